/** The value table of workbooks: what stands in a cell → what SQLite stores. */
import { withoutTrailingZeros } from "../../Digits.js"
import type { FormatKind } from "./NumberFormat.js"

export type Stored = null | bigint | number | string

/** Kinds of cell content, as bits, so that a column's kinds are a sum. */
export const Kind = {
  integer: 1,
  real: 2,
  text: 4,
  boolean: 8,
  /** A date or time, stored as text. */
  moment: 16,
  error: 32,
  /** A formula without a cached value. */
  uncached: 64
} as const

export type ColumnType = "INTEGER" | "REAL" | "TEXT" | "ANY" | "BOOLEAN"

/** The type of a column that holds these kinds; errors and missing values are null and count for nothing. */
export const typeOfKinds = (kinds: number, realsHoldIntegers: boolean): ColumnType => {
  switch (kinds & (Kind.integer | Kind.real | Kind.text | Kind.boolean | Kind.moment)) {
    case Kind.integer:
      return "INTEGER"
    case Kind.real:
      return "REAL"
    case Kind.integer | Kind.real:
      // An integer beyond 2^53 would lose digits among reals.
      return realsHoldIntegers ? "REAL" : "ANY"
    case Kind.text:
    case Kind.moment:
    case Kind.text | Kind.moment:
      return "TEXT"
    case Kind.boolean:
      return "BOOLEAN"
    default:
      return "ANY"
  }
}

const pad = (value: number, width: number) => String(value).padStart(width, "0")

const dayMs = 86_400_000
/** Serials as milliseconds keep less than a double's digits, but all that a program shows or sets. */
const clockText = (ms: number): string => {
  const seconds = Math.floor(ms / 1000)
  const rest = ms - seconds * 1000
  const fraction = rest === 0 ? "" : `.${pad(rest, 3).replace(/0+$/, "")}`
  return `${pad(Math.floor(seconds / 3600), 2)}:${pad(Math.floor(seconds / 60) % 60, 2)}:${pad(seconds % 60, 2)}${fraction}`
}

const calendarText = (date: Date) =>
  `${pad(date.getUTCFullYear(), 4)}-${pad(date.getUTCMonth() + 1, 2)}-${pad(date.getUTCDate(), 2)}`

const epoch1900 = Date.UTC(1899, 11, 31)
const epoch1904 = Date.UTC(1904, 0, 1)
const dates = new Map<number, string>()

/** Day number → date. 1900 has a 29 February here (day 60), as the standard says. */
const dayText = (day: number, date1904: boolean): string => {
  const key = date1904 ? -1 - day : day
  const known = dates.get(key)
  if (known !== undefined) return known
  const text = date1904
    ? calendarText(new Date(epoch1904 + day * dayMs))
    : day === 60
      ? "1900-02-29"
      : calendarText(new Date(epoch1900 + (day > 60 ? day - 1 : day) * dayMs))
  if (dates.size > 50_000) dates.clear()
  dates.set(key, text)
  return text
}

/** The first day past 9999-12-31. */
const endOf1900 = 2_958_466
const endOf1904 = 2_957_004

/**
 * The text of a serial number shown by a date or time format; undefined where it is none (negative, or past the year
 * 9999), so that the number stays. A date with a time of day keeps it, whatever its format shows.
 */
export const momentText = (serial: number, kind: FormatKind, date1904: boolean): string | undefined => {
  const ms = Math.round(serial * dayMs)
  const day = Math.floor(ms / dayMs)
  if (!(serial >= 0) || day >= (date1904 ? endOf1904 : endOf1900)) return undefined
  if (kind === "clock") return clockText(ms)
  const time = ms - day * dayMs
  if (kind === "date" && time === 0) return dayText(day, date1904)
  return `${dayText(day, date1904)}T${clockText(time)}`
}

const iso = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(?::(\d\d)(?:[.,](\d+))?)?)?Z?$/

/** An ISO date in a cell of its own type: the same form as other dates have, or as it is. */
export const isoText = (text: string, kind: FormatKind): string => {
  const trimmed = text.trim()
  const found = iso.exec(trimmed)
  if (found === null) return trimmed.replace(/^T(?=\d)/, "").replace(/^(\d\d:\d\d)$/, "$1:00")
  const [, date = "", minutes, seconds = "00", digits = ""] = found
  if (minutes === undefined) return kind === "datetime" ? `${date}T00:00:00` : date
  const fraction = withoutTrailingZeros(digits)
  const time = `${minutes}:${seconds}${fraction === "" ? "" : `.${fraction}`}`
  return kind === "date" && time === "00:00:00" ? date : `${date}T${time}`
}

const powers = Array.from({ length: 23 }, (_, exponent) => 10 ** exponent)
const plainDigits = /^[+-]?\d+$/
const numeric = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)([eE][+-]?\d+)?$/

/** The number that bytes spell, where a double's arithmetic reads it exactly; NaN sends to {@link storedNumber}. */
export const quickNumber = (bytes: Buffer, from: number, to: number): number => {
  let at = from
  let negative = false
  if (bytes[at] === 0x2d) {
    negative = true
    at++
  }
  const start = at
  if (to - at > 16) return Number.NaN
  let mantissa = 0
  let decimals = -1
  for (; at < to; at++) {
    const digit = (bytes[at] ?? 0) - 48
    if (digit >= 0 && digit <= 9) {
      mantissa = mantissa * 10 + digit
      if (decimals >= 0) decimals++
    } else if (digit === -2 && decimals < 0) decimals = 0
    else return Number.NaN
  }
  const digits = to - start - (decimals >= 0 ? 1 : 0)
  if (digits === 0 || mantissa > Number.MAX_SAFE_INTEGER) return Number.NaN
  const value = decimals > 0 ? mantissa / (powers[decimals] ?? 1) : mantissa
  return negative && value !== 0 ? -value : value
}

const int64Max = 2n ** 63n - 1n
const int64Min = -(2n ** 63n)

/** The number that a text spells; digits beyond 64 bits, and text that is no number, stay text. */
export const storedNumber = (text: string): number | bigint | string => {
  const trimmed = text.trim()
  if (!numeric.test(trimmed)) return text
  const value = Number(trimmed)
  if (plainDigits.test(trimmed) && !Number.isSafeInteger(value)) {
    if (Math.abs(value) > 2 ** 63) return trimmed
    const exact = BigInt(trimmed.replace(/^\+/, ""))
    return exact <= int64Max && exact >= int64Min ? exact : trimmed
  }
  return Number.isFinite(value) ? (value === 0 ? 0 : value) : text
}

/** `_xHHHH_` stands for a character that XML cannot hold. */
export const decodeEscapes = (text: string): string =>
  text.includes("_x")
    ? text.replace(/_x([0-9A-Fa-f]{4})_/g, (_, code: string) =>
        String.fromCharCode(Number.parseInt(code, 16))
      )
    : text
