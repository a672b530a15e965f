/**
 * SQL Server's value table: the bytes of a value as they stand on the wire (MS-TDS) → a cell. The driver's own reading
 * loses decimals, money, the digits of datetime2 and the offset of datetimeoffset, so that its reader is not used.
 */
import iconv from "iconv-lite"
import { Collation } from "tedious/lib/collation.js"
import type { Cell } from "../../Rows.js"
import { hierarchyText } from "./Hierarchy.js"

/** A column's type as COLMETADATA gives it; `name` is the driver's name of the wire type. */
export interface WireType {
  readonly name: string
  /** Tells rowversion from binary. */
  readonly userType?: number | undefined
  /** In bytes; tells the widths of IntN, FloatN, MoneyN and DateTimeN apart, and `max` types (0xffff) from others. */
  readonly length?: number | undefined
  readonly scale?: number | undefined
  /** Of varchar, char and text. */
  readonly codepage?: string | undefined
  /** The name of a CLR type. */
  readonly clrType?: string | undefined
}

/** Reads the bytes of one value that is not null. */
export type Decode = (bytes: Buffer) => Cell

/** How the wire tells where a value ends: a fixed size, a length before it, or chunks. */
export type Framing =
  | { readonly kind: "fixed"; readonly size: number }
  | { readonly kind: "byte" | "short" | "long" | "pointer" | "chunks" }

export const maxLength = 0xffff
const rowversion = 80

const pad = (n: number, width: number) => String(n).padStart(width, "0")

// ---------------------------------------------------------------------------------------------------------------------
// Numbers

const integer = (value: bigint): number | string => {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : value.toString()
}

const float = (value: number): number | string => (Number.isFinite(value) ? value : String(value))

const leastNormal = 2 ** -126

/** The shortest number that reads back the same at four bytes. */
const real = (value: number): number | string => {
  if (!Number.isFinite(value)) return String(value)
  // Six digits are always right at four bytes, except in numbers that lack a part of their precision.
  for (let digits = Math.abs(value) < leastNormal ? 1 : 6; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits))
    if (Math.fround(short) === value) return short
  }
  return Number(value.toPrecision(9))
}

const unsigned = (bytes: Buffer, from: number, to: number): bigint => {
  let value = 0n
  for (let i = to - 1; i >= from; i--) value = (value << 8n) | BigInt(bytes[i] ?? 0)
  return value
}

const scaled = (magnitude: bigint, negative: boolean, scale: number): string => {
  const digits = magnitude.toString().padStart(scale + 1, "0")
  const text = scale === 0 ? digits : `${digits.slice(0, -scale)}.${digits.slice(-scale)}`
  return negative && magnitude !== 0n ? `-${text}` : text
}

const decimal =
  (scale: number): Decode =>
  (bytes) =>
    scaled(unsigned(bytes, 1, bytes.length), bytes[0] === 0, scale)

const money: Decode = (bytes) => {
  const value =
    bytes.length === 4
      ? BigInt(bytes.readInt32LE(0))
      : (BigInt(bytes.readInt32LE(0)) << 32n) | BigInt(bytes.readUInt32LE(4))
  return scaled(value < 0n ? -value : value, value < 0n, 4)
}

const int: Decode = (bytes) => {
  switch (bytes.length) {
    case 1:
      return bytes.readUInt8(0)
    case 2:
      return bytes.readInt16LE(0)
    case 4:
      return bytes.readInt32LE(0)
    default:
      return integer(bytes.readBigInt64LE(0))
  }
}

const floating: Decode = (bytes) =>
  bytes.length === 4 ? real(bytes.readFloatLE(0)) : float(bytes.readDoubleLE(0))

const bit: Decode = (bytes) => bytes[0] !== 0

// ---------------------------------------------------------------------------------------------------------------------
// Dates and times

const dayMs = 86_400_000
/** Days from 0001-01-01, the epoch of date, and from 1900-01-01, the epoch of datetime, to 1970-01-01. */
const epochOfDate = 719_162
const epochOfDateTime = 25_567

/** A day of the proleptic Gregorian calendar; SQL Server's years are 1 to 9999. */
const day = (sinceUnix: number): string => new Date(sinceUnix * dayMs).toISOString().slice(0, 10)

const fraction = (units: number, digits: number): string => {
  const text = pad(units, digits).replace(/0+$/, "")
  return text === "" ? "" : `.${text}`
}

const clock = (units: number, scale: number): string => {
  const perSecond = 10 ** scale
  const seconds = Math.floor(units / perSecond)
  const rest = units % perSecond
  const hms = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60].map((n) => pad(n, 2))
  return hms.join(":") + (scale === 0 ? "" : fraction(rest, scale))
}

const dateDays = (bytes: Buffer, at: number) => bytes.readUIntLE(at, 3)

const date: Decode = (bytes) => day(dateDays(bytes, 0) - epochOfDate)

const time =
  (scale: number): Decode =>
  (bytes) =>
    clock(bytes.readUIntLE(0, bytes.length), scale)

const datetime2 =
  (scale: number): Decode =>
  (bytes) => {
    const size = bytes.length - 3
    return `${day(dateDays(bytes, size) - epochOfDate)}T${clock(bytes.readUIntLE(0, size), scale)}`
  }

/** On the wire: the moment in UTC, then the offset in minutes. */
const datetimeoffset =
  (scale: number): Decode =>
  (bytes) => {
    const size = bytes.length - 5
    const offset = bytes.readInt16LE(size + 3)
    const perDay = 86_400 * 10 ** scale
    const local = bytes.readUIntLE(0, size) + offset * 60 * 10 ** scale
    const carry = Math.floor(local / perDay)
    const minutes = Math.abs(offset)
    const zone = `${offset < 0 ? "-" : "+"}${pad(Math.floor(minutes / 60), 2)}:${pad(minutes % 60, 2)}`
    return `${day(dateDays(bytes, size) - epochOfDate + carry)}T${clock(local - carry * perDay, scale)}${zone}`
  }

/** datetime counts 1/300 s and is spelled with three digits; smalldatetime counts minutes. */
const datetime: Decode = (bytes) => {
  if (bytes.length === 4)
    return `${day(bytes.readUInt16LE(0) - epochOfDateTime)}T${clock(bytes.readUInt16LE(2) * 60, 0)}`
  const ms = Math.round((bytes.readUInt32LE(4) * 10) / 3)
  return `${day(bytes.readInt32LE(0) - epochOfDateTime)}T${clock(ms, 3)}`
}

// ---------------------------------------------------------------------------------------------------------------------
// Text, bytes, and the rest

const utf16: Decode = (bytes) => bytes.toString("utf16le")

/** The XML text may begin with a byte order mark, which is no part of it. */
const xml: Decode = (bytes) => bytes.toString("utf16le").replace(/^\ufeff/, "")

const encoded =
  (codepage: string): Decode =>
  (bytes) =>
    iconv.decode(bytes, codepage, { stripBOM: false })

/** The bytes outlive the packet they came in. */
const binary: Decode = (bytes) => new Uint8Array(bytes)

/** The first three groups are little-endian. */
const uniqueidentifier: Decode = (bytes) => {
  const hex = Buffer.from(
    [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15].map((i) => bytes[i] ?? 0)
  ).toString("hex")
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-")
}

const clr = (type: string | undefined): Decode =>
  type?.toLowerCase() === "hierarchyid" ? (bytes) => hierarchyText(bytes) ?? binary(bytes) : binary

/** Base types of a sql_variant by their number; a decoder is made from the value's own properties. */
const variants: Readonly<Record<number, (properties: Buffer) => Decode>> = {
  36: () => uniqueidentifier,
  40: () => date,
  41: (p) => time(p.readUInt8(0)),
  42: (p) => datetime2(p.readUInt8(0)),
  43: (p) => datetimeoffset(p.readUInt8(0)),
  48: () => int,
  50: () => bit,
  52: () => int,
  56: () => int,
  58: () => datetime,
  59: () => floating,
  60: () => money,
  61: () => datetime,
  62: () => floating,
  106: (p) => decimal(p.readUInt8(1)),
  108: (p) => decimal(p.readUInt8(1)),
  122: () => money,
  127: () => int,
  165: () => binary,
  173: () => binary,
  167: (p) => encoded(codepageOf(p)),
  175: (p) => encoded(codepageOf(p)),
  231: () => utf16,
  239: () => utf16
}

const defaultCodepage = "utf8"

/** A character value's properties: its collation, then its longest length. */
const codepageOf = (properties: Buffer): string =>
  Collation.fromBuffer(properties.subarray(0, 5)).codepage ?? defaultCodepage

const variant: Decode = (bytes) => {
  const base = bytes.readUInt8(0)
  const from = 2 + bytes.readUInt8(1)
  const make = variants[base]
  if (make === undefined) throw new Error(`Unknown base type 0x${base.toString(16)} of a sql_variant`)
  return make(bytes.subarray(2, from))(bytes.subarray(from))
}

interface Kind {
  /** The name in `sys.types`. */
  readonly type: (wire: WireType) => string
  readonly framing: (wire: WireType) => Framing
  readonly decode: (wire: WireType) => Decode
}

const fixed = (type: string, size: number, decode: Decode): Kind => ({
  type: () => type,
  framing: () => ({ kind: "fixed", size }),
  decode: () => decode
})

const byWidth = (types: Readonly<Record<number, string>>, decode: Decode): Kind => ({
  type: ({ length, name }) => types[length ?? 0] ?? name.toLowerCase(),
  framing: () => ({ kind: "byte" }),
  decode: () => decode
})

const counted = (type: string, decode: (wire: WireType) => Decode): Kind => ({
  type: () => type,
  framing: () => ({ kind: "byte" }),
  decode
})

const variable = (type: string, decode: (wire: WireType) => Decode): Kind => ({
  type: () => type,
  framing: ({ length }) => ({ kind: length === maxLength ? "chunks" : "short" }),
  decode
})

const framed = (
  type: string,
  kind: "long" | "pointer" | "chunks",
  decode: (wire: WireType) => Decode
): Kind => ({
  type: () => type,
  framing: () => ({ kind }),
  decode
})

const inCodepage = ({ codepage }: WireType) => encoded(codepage ?? defaultCodepage)

/** Every wire type of TDS 7.4 by the driver's name for it. */
export const kinds: Readonly<Record<string, Kind>> = {
  Null: fixed("int", 0, () => null),
  TinyInt: fixed("tinyint", 1, int),
  SmallInt: fixed("smallint", 2, int),
  Int: fixed("int", 4, int),
  BigInt: fixed("bigint", 8, int),
  IntN: byWidth({ 1: "tinyint", 2: "smallint", 4: "int", 8: "bigint" }, int),
  Bit: fixed("bit", 1, bit),
  BitN: counted("bit", () => bit),
  Real: fixed("real", 4, floating),
  Float: fixed("float", 8, floating),
  FloatN: byWidth({ 4: "real", 8: "float" }, floating),
  SmallMoney: fixed("smallmoney", 4, money),
  Money: fixed("money", 8, money),
  MoneyN: byWidth({ 4: "smallmoney", 8: "money" }, money),
  DecimalN: counted("decimal", ({ scale }) => decimal(scale ?? 0)),
  NumericN: counted("numeric", ({ scale }) => decimal(scale ?? 0)),
  SmallDateTime: fixed("smalldatetime", 4, datetime),
  DateTime: fixed("datetime", 8, datetime),
  DateTimeN: byWidth({ 4: "smalldatetime", 8: "datetime" }, datetime),
  Date: counted("date", () => date),
  Time: counted("time", ({ scale }) => time(scale ?? 7)),
  DateTime2: counted("datetime2", ({ scale }) => datetime2(scale ?? 7)),
  DateTimeOffset: counted("datetimeoffset", ({ scale }) => datetimeoffset(scale ?? 7)),
  UniqueIdentifier: counted("uniqueidentifier", () => uniqueidentifier),
  VarChar: variable("varchar", inCodepage),
  Char: variable("char", inCodepage),
  NVarChar: variable("nvarchar", () => utf16),
  NChar: variable("nchar", () => utf16),
  VarBinary: variable("varbinary", () => binary),
  Binary: {
    ...variable("binary", () => binary),
    type: ({ userType }) => (userType === rowversion ? "timestamp" : "binary")
  },
  Text: framed("text", "pointer", inCodepage),
  NText: framed("ntext", "pointer", () => utf16),
  Image: framed("image", "pointer", () => binary),
  Xml: framed("xml", "chunks", () => xml),
  UDT: {
    ...framed("udt", "chunks", ({ clrType }) => clr(clrType)),
    type: ({ clrType }) => clrType ?? "udt"
  },
  Variant: framed("sql_variant", "long", () => variant)
}

/** How the values of a column are found on the wire and read. */
export interface Reading {
  readonly type: string
  readonly framing: Framing
  readonly decode: Decode
  /** What a value cut by size is: text in an encoding, or bytes. */
  readonly large: "utf16le" | "binary" | { readonly codepage: string }
}

/** The reading of a column's values. An unknown wire type is a fault of the connection. */
export const readingOf = (wire: WireType): Reading => {
  const kind = kinds[wire.name]
  if (kind === undefined) throw new Error(`Unknown wire type ${wire.name}`)
  return {
    type: kind.type(wire),
    framing: kind.framing(wire),
    decode: kind.decode(wire),
    large: ["NVarChar", "NText", "Xml"].includes(wire.name)
      ? "utf16le"
      : ["VarChar", "Text"].includes(wire.name)
        ? { codepage: wire.codepage ?? defaultCodepage }
        : "binary"
  }
}
