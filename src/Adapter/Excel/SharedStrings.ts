/**
 * The shared strings of a workbook. They are kept as bytes outside the JavaScript heap, because a sheet can have
 * millions of them, and become strings when a cell names them.
 */
import type { Archive } from "./Archive.js"
import { Problem } from "./Problem.js"
import { decodeEscapes } from "./Value.js"
import { decodeText, readXml } from "./Xml.js"

/** Strings read lately, by the low bits of their number. */
const cacheSize = 8192

export class SharedStrings {
  #bytes = Buffer.allocUnsafeSlow(64 * 1024)
  #length = 0
  #ends = new Uint32Array(1024)
  #count = 0
  readonly #cachedIndex = new Int32Array(cacheSize).fill(-1)
  readonly #cached: Array<string> = new Array(cacheSize).fill("")

  get count(): number {
    return this.#count
  }

  /** Undefined where there is no such string. */
  get(index: number): string | undefined {
    if (!(index >= 0 && index < this.#count)) return undefined
    const slot = index & (cacheSize - 1)
    if (this.#cachedIndex[slot] === index) return this.#cached[slot]
    const text = this.#bytes.toString("utf8", index === 0 ? 0 : this.#ends[index - 1], this.#ends[index])
    this.#cachedIndex[slot] = index
    this.#cached[slot] = text
    return text
  }

  /** Adds bytes to the string under way. */
  append(bytes: Buffer, from: number, to: number): void {
    this.#reserve(to - from)
    bytes.copy(this.#bytes, this.#length, from, to)
    this.#length += to - from
  }

  appendText(text: string): void {
    const size = Buffer.byteLength(text)
    this.#reserve(size)
    this.#bytes.write(text, this.#length, "utf8")
    this.#length += size
  }

  /** Ends the string under way. */
  finish(): void {
    if (this.#count === this.#ends.length) {
      const ends = new Uint32Array(this.#ends.length * 2)
      ends.set(this.#ends)
      this.#ends = ends
    }
    this.#ends[this.#count++] = this.#length
  }

  #reserve(size: number): void {
    const needed = this.#length + size
    if (needed <= this.#bytes.length) return
    if (needed > maxBytes)
      throw new Problem("WORKBOOK_TOO_LARGE", "its texts take more memory than it may have.")
    const bytes = Buffer.allocUnsafeSlow(Math.max(needed, Math.min(this.#bytes.length * 2, maxBytes)))
    this.#bytes.copy(bytes, 0, 0, this.#length)
    this.#bytes = bytes
  }
}

const maxBytes = 512 * 2 ** 20

/** Whether bytes are their own text: no entity, carriage return or `_x` in them. */
const isPlain = (bytes: Buffer, from: number, to: number): boolean => {
  for (let i = from; i < to; i++) {
    const byte = bytes[i]
    if (byte === 0x26 || byte === 13 || (byte === 0x5f && bytes[i + 1] === 0x78)) return false
  }
  return true
}

export const readSharedStrings = async (archive: Archive, part: string): Promise<SharedStrings> => {
  const strings = new SharedStrings()
  let inText = false
  let phonetic = 0
  let inItem = false
  await readXml(archive.read(part), {
    open: (tag) => {
      if (tag.name === "si") inItem = true
      else if (tag.name === "rPh") phonetic++
      else if (tag.name === "t") inText = inItem && phonetic === 0
    },
    close: (name) => {
      if (name === "t") inText = false
      else if (name === "rPh") phonetic--
      else if (name === "si") {
        inItem = false
        strings.finish()
      }
    },
    text: (bytes, from, to) => {
      if (!inText) return
      if (isPlain(bytes, from, to)) strings.append(bytes, from, to)
      else strings.appendText(decodeEscapes(decodeText(bytes, from, to)))
    },
    data: (text) => {
      if (inText) strings.appendText(decodeEscapes(text))
    }
  })
  return strings
}
