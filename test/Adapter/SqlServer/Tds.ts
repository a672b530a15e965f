/** The bytes of TDS 7.4 as a server sends them (MS-TDS 2.2): packets, tokens, columns and values. */

export const u8 = (n: number) => Buffer.from([n & 0xff])
export const u16 = (n: number) => {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16LE(n & 0xffff)
  return bytes
}
export const i16 = (n: number) => u16(n & 0xffff)
export const u32 = (n: number) => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(n >>> 0)
  return bytes
}
export const i32 = (n: number) => u32(n)
export const i64 = (n: bigint) => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigInt64LE(n)
  return bytes
}
export const u64 = (n: bigint) => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(n)
  return bytes
}
/** Little-endian, `size` bytes. */
export const uint = (n: bigint, size: number) =>
  Buffer.from(Array.from({ length: size }, (_, i) => Number((n >> BigInt(8 * i)) & 0xffn)))
export const f32 = (n: number) => {
  const bytes = Buffer.alloc(4)
  bytes.writeFloatLE(n)
  return bytes
}
export const f64 = (n: number) => {
  const bytes = Buffer.alloc(8)
  bytes.writeDoubleLE(n)
  return bytes
}
export const hex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex")
export const ucs2 = (text: string) => Buffer.from(text, "utf16le")
export const shortText = (text: string) => Buffer.concat([u8(text.length), ucs2(text)])
export const longText = (text: string) => Buffer.concat([u16(text.length), ucs2(text)])

// Packets

export const packetType = {
  batch: 0x01,
  rpc: 0x03,
  answer: 0x04,
  attention: 0x06,
  login: 0x10,
  sspi: 0x11,
  prelogin: 0x12
} as const

const bodySize = 4088

export const packet = (type: number, body: Buffer, last: boolean): Buffer => {
  const header = Buffer.alloc(8)
  header[0] = type
  header[1] = last ? 1 : 0
  header.writeUInt16BE(body.length + 8, 2)
  header[6] = 1
  return Buffer.concat([header, body])
}

/** A message in as many packets as it needs; without its end when more is to follow. */
export const message = (
  body: Buffer,
  options: { readonly type?: number; readonly last?: boolean } = {}
): Buffer => {
  const { last = true, type = packetType.answer } = options
  const packets: Array<Buffer> = []
  for (let at = 0; at === 0 || at < body.length; at += bodySize)
    packets.push(packet(type, body.subarray(at, at + bodySize), last && at + bodySize >= body.length))
  return Buffer.concat(packets)
}

// Tokens

export const doneStatus = { final: 0, more: 1, error: 2, count: 0x10, attention: 0x20 } as const

const doneToken =
  (token: number) =>
  (status = 0, rows = 0n, command = 0xc1): Buffer =>
    Buffer.concat([u8(token), u16(status), u16(command), u64(rows)])

export const done = doneToken(0xfd)
export const doneProc = doneToken(0xfe)
export const doneInProc = doneToken(0xff)

export interface ServerMessage {
  readonly number: number
  readonly class: number
  readonly message: string
  readonly line?: number
}

const said = (token: number, { class: severity, line = 1, message, number }: ServerMessage): Buffer => {
  const body = Buffer.concat([
    i32(number),
    u8(1),
    u8(severity),
    longText(message),
    shortText("test"),
    shortText(""),
    u32(line)
  ])
  return Buffer.concat([u8(token), u16(body.length), body])
}

export const error = (what: ServerMessage) => said(0xaa, what)
export const info = (what: ServerMessage) => said(0xab, what)

export const loginAck = (): Buffer => {
  const body = Buffer.concat([u8(1), hex("74000004"), shortText("Test SQL Server"), hex("10000000")])
  return Buffer.concat([u8(0xad), u16(body.length), body])
}

// Columns and values

/** Latin1_General_CI_AS: code page 1252. */
export const latin1 = hex("0904d00034")
/** Latin1_General_100_CI_AS_SC_UTF8. */
export const utf8 = hex("0904d02400")

export interface Column {
  readonly name: string
  /** TYPE_INFO. */
  readonly type: Buffer
  readonly userType?: number
  /** Of text, ntext and image only. */
  readonly table?: string
}

export const columns = (list: ReadonlyArray<Column>): Buffer =>
  Buffer.concat([
    u8(0x81),
    u16(list.length),
    ...list.map(({ name, table, type, userType = 0 }) =>
      Buffer.concat([
        u32(userType),
        u16(9),
        type,
        table === undefined ? Buffer.alloc(0) : Buffer.concat([u8(1), longText(table)]),
        shortText(name)
      ])
    )
  ])

export const row = (values: ReadonlyArray<Buffer>): Buffer => Buffer.concat([u8(0xd1), ...values])

/** A row that marks its nulls in a bitmap. */
export const nbcRow = (values: ReadonlyArray<Buffer | null>): Buffer => {
  const nulls = Buffer.alloc(Math.ceil(values.length / 8))
  for (const [i, value] of values.entries())
    if (value === null) nulls[i >> 3] = (nulls[i >> 3] ?? 0) | (1 << (i & 7))
  return Buffer.concat([u8(0xd2), nulls, ...values.filter((value) => value !== null)])
}

export const intN = (size: number) => Buffer.from([0x26, size])
export const int4: Column["type"] = intN(4)
export const intColumn = (name: string): Column => ({ name, type: int4 })
export const intValue = (n: number) => Buffer.concat([u8(4), i32(n)])
export const nvarchar = (length: number) => Buffer.concat([u8(0xe7), u16(length), latin1])
export const nvarcharValue = (text: string) => Buffer.concat([u16(text.length * 2), ucs2(text)])

/** A value in chunks of `size` bytes. */
export const chunks = (value: Buffer, size = value.length, known = true): Buffer => {
  const parts: Array<Buffer> = [known ? u64(BigInt(value.length)) : u64(0xffff_ffff_ffff_fffen)]
  for (let at = 0; at < value.length; at += size) {
    const chunk = value.subarray(at, at + size)
    parts.push(u32(chunk.length), chunk)
  }
  return Buffer.concat([...parts, u32(0)])
}
export const nullChunks = u64(0xffff_ffff_ffff_ffffn)

export const counted = (value: Buffer) => Buffer.concat([u8(value.length), value])
export const shortCounted = (value: Buffer) => Buffer.concat([u16(value.length), value])
/** text, ntext and image: a pointer and a timestamp before the value. */
export const pointed = (value: Buffer) => Buffer.concat([u8(16), Buffer.alloc(24), u32(value.length), value])

export const variant = (base: number, properties: Buffer, value: Buffer) =>
  Buffer.concat([
    u32(2 + properties.length + value.length),
    u8(base),
    u8(properties.length),
    properties,
    value
  ])

export const decimal = (magnitude: bigint, size: 5 | 9 | 13 | 17) =>
  Buffer.concat([u8(magnitude < 0n ? 0 : 1), uint(magnitude < 0n ? -magnitude : magnitude, size - 1)])

/** Days since 0001-01-01. */
export const dayNumber = (date: string) => Math.round(Date.parse(`${date}T00:00:00Z`) / 86_400_000) + 719_162
export const days3 = (date: string) => uint(BigInt(dayNumber(date)), 3)
/** Units of 10^-scale seconds since midnight, in the width of that scale. */
export const ticks = (time: string, scale: number) => {
  const [, h = "0", m = "0", s = "0", fraction = ""] = /^(\d+):(\d+):(\d+)(?:\.(\d+))?$/.exec(time) ?? []
  const seconds = BigInt(h) * 3600n + BigInt(m) * 60n + BigInt(s)
  const units = seconds * 10n ** BigInt(scale) + BigInt(fraction.padEnd(scale, "0").slice(0, scale) || "0")
  return uint(units, scale <= 2 ? 3 : scale <= 4 ? 4 : 5)
}
