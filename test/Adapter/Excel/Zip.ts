/** Writes zip archives by hand, so that each oddity is exact. */
import { crc32, deflateRawSync } from "node:zlib"

export interface ZipEntry {
  readonly name: string
  readonly content: string | Buffer
  readonly stored?: boolean
  /** What the directory says, where that is not the truth. */
  readonly declaredSize?: number
  readonly declaredCrc?: number
  /** General purpose flags; bit 0 is encryption. */
  readonly flags?: number
}

export interface ZipOptions {
  /** Sizes and offsets in the 64-bit form. */
  readonly zip64?: boolean
  /** Bytes before the first entry's header. */
  readonly comment?: string
}

const u16 = (n: number) => {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16LE(n)
  return bytes
}
const u32 = (n: number) => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(n >>> 0)
  return bytes
}
const u64 = (n: number) => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(BigInt(n))
  return bytes
}

const most = 0xffff_ffff

export const zip = (
  entries: ReadonlyArray<ZipEntry>,
  { comment = "", zip64 = false }: ZipOptions = {}
): Buffer => {
  const locals: Array<Buffer> = []
  const directory: Array<Buffer> = []
  let offset = 0
  for (const { content, declaredCrc, declaredSize, flags = 0x800, name, stored = false } of entries) {
    const bytes = Buffer.from(content)
    const packed = stored ? bytes : deflateRawSync(bytes)
    const size = declaredSize ?? bytes.length
    const crc = declaredCrc ?? crc32(bytes)
    const label = Buffer.from(name)
    const extra = zip64
      ? Buffer.concat([u16(1), u16(24), u64(size), u64(packed.length), u64(offset)])
      : Buffer.alloc(0)
    const shared = [
      u16(zip64 ? 45 : 20),
      u16(flags),
      u16(stored ? 0 : 8),
      u16(0),
      u16(0x21),
      u32(crc),
      u32(zip64 ? most : packed.length),
      u32(zip64 ? most : size),
      u16(label.length)
    ]
    const local = Buffer.concat([u32(0x0403_4b50), ...shared, u16(0), label, packed])
    directory.push(
      Buffer.concat([
        u32(0x0201_4b50),
        u16(45),
        ...shared,
        u16(extra.length),
        u16(0),
        u16(0),
        u16(0),
        u32(0),
        u32(zip64 ? most : offset),
        label,
        extra
      ])
    )
    locals.push(local)
    offset += local.length
  }
  const central = Buffer.concat(directory)
  const tail64 = zip64
    ? Buffer.concat([
        u32(0x0606_4b50),
        u64(44),
        u16(45),
        u16(45),
        u32(0),
        u32(0),
        u64(entries.length),
        u64(entries.length),
        u64(central.length),
        u64(offset),
        u32(0x0706_4b50),
        u32(0),
        u64(offset + central.length),
        u32(1)
      ])
    : Buffer.alloc(0)
  const note = Buffer.from(comment)
  const end = Buffer.concat([
    u32(0x0605_4b50),
    u16(0),
    u16(0),
    u16(zip64 ? 0xffff : entries.length),
    u16(zip64 ? 0xffff : entries.length),
    u32(zip64 ? most : central.length),
    u32(zip64 ? most : offset),
    u16(note.length),
    note
  ])
  return Buffer.concat([...locals, central, tail64, end])
}
