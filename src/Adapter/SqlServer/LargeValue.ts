/** Takes a value piece by piece and holds no more of it than an answer can show. */
import iconv from "iconv-lite"
import { type Cell, Excerpt } from "../../Rows.js"
import type { Reading } from "./Value.js"

/** The size in UTF-8 of text that comes in pieces. */
interface TextSize {
  readonly add: (piece: Buffer) => void
  readonly total: () => number
}

/** Pieces may end inside a code unit or between the halves of a pair. */
const sizeOfUtf16 = (): TextSize => {
  let total = 0
  let low: number | undefined
  let afterHigh = false
  const unit = (code: number) => {
    if (code < 0x80) total += 1
    else if (code < 0x800) total += 2
    // A pair takes four bytes: three for its first half as if alone, one more for the second.
    else if (afterHigh && code >= 0xdc00 && code <= 0xdfff) total += 1
    else total += 3
    afterHigh = code >= 0xd800 && code <= 0xdbff
  }
  return {
    add: (piece) => {
      let at = 0
      if (low !== undefined && piece.length > 0) {
        unit(low | ((piece[0] ?? 0) << 8))
        low = undefined
        at = 1
      }
      for (; at + 1 < piece.length; at += 2) unit(piece.readUInt16LE(at))
      if (at < piece.length) low = piece[at]
    },
    total: () => total
  }
}

const sizeOfEncoded = (codepage: string): TextSize => {
  const decoder = iconv.getDecoder(codepage)
  let total = 0
  return {
    add: (piece) => {
      total += Buffer.byteLength(decoder.write(piece))
    },
    total: () => total + Buffer.byteLength(decoder.end() ?? "")
  }
}

const sizeOfBytes = (): TextSize => {
  let total = 0
  return {
    add: (piece) => {
      total += piece.length
    },
    total: () => total
  }
}

const sizeOf = (large: Reading["large"]): TextSize => {
  if (large === "binary") return sizeOfBytes()
  return large === "utf16le" ? sizeOfUtf16() : sizeOfEncoded(large.codepage)
}

export class LargeValue {
  readonly #reading: Reading
  readonly #keep: number
  #pieces: Array<Buffer> = []
  #held = 0
  #size: TextSize | undefined

  constructor(reading: Reading, keep: number) {
    this.#reading = reading
    this.#keep = keep
  }

  add(piece: Buffer): void {
    if (this.#size !== undefined) {
      this.#size.add(piece)
      return
    }
    this.#pieces.push(piece)
    this.#held += piece.length
    if (this.#held <= this.#keep) return
    const all = Buffer.concat(this.#pieces)
    this.#size = sizeOf(this.#reading.large)
    this.#size.add(all)
    // Both halves of a code unit are kept, or none.
    this.#pieces = [Buffer.from(all.subarray(0, this.#keep & ~1))]
  }

  value(): Cell {
    const bytes = Buffer.concat(this.#pieces)
    if (this.#size === undefined) return this.#reading.decode(bytes)
    const kept = this.#reading.large === "binary" ? new Uint8Array(bytes) : this.#reading.decode(bytes)
    return typeof kept === "string" || kept instanceof Uint8Array
      ? new Excerpt(kept, this.#size.total())
      : kept
  }
}
