/**
 * A streaming XML reader over the bytes of a part. It is no validator: it wants balanced tags and known entities,
 * refuses a document type (which no part of a workbook may have), and gives names without their namespace prefix.
 *
 * Measured beside saxes 6 on the XML of a sheet of 100,000 × 20 cells (74 MB): 0.4 s of processor time against 1.2 s.
 * It also lets a cell's reference and number be read from the bytes, without a string for either.
 */
import { TextDecoder } from "node:util"
import { damaged, Problem } from "./Problem.js"

/** Receives a document in order. `Tag` is valid only during the call. */
export interface XmlHandler {
  readonly open: (tag: Tag) => void
  readonly close: (name: string) => void
  /** Text between tags, still encoded: see {@link decodeText}. A CDATA section comes through `data`. */
  readonly text: (bytes: Buffer, from: number, to: number) => void
  readonly data: (text: string) => void
}

const LT = 0x3c
const GT = 0x3e
const SLASH = 0x2f
const BANG = 0x21
const QUESTION = 0x3f
const EQUALS = 0x3d
const QUOTE = 0x22
const APOSTROPHE = 0x27
const AMPERSAND = 0x26
const COLON = 0x3a

/** Longest tag and longest run of text, in bytes. Excel's own bounds are far below. */
const longestToken = 8 * 2 ** 20
const deepest = 256

const named: Readonly<Record<string, string>> = { lt: "<", gt: ">", amp: "&", quot: '"', apos: "'" }

const entity = (_: string, name: string): string => {
  if (name.startsWith("#")) {
    const code = /^#x/i.test(name) ? Number.parseInt(name.slice(2), 16) : Number.parseInt(name.slice(1), 10)
    if (!(code >= 0 && code <= 0x10ffff)) throw damaged("its XML holds a character reference that is none.")
    return String.fromCodePoint(code)
  }
  const text = Object.hasOwn(named, name) ? named[name] : undefined
  if (text === undefined) throw damaged("its XML refers to an entity that it may not have.")
  return text
}

const decodeEntities = (text: string): string =>
  text.replace(/&([^;&<]{0,32});?/g, (whole, name: string) => {
    if (!whole.endsWith(";")) throw damaged("its XML is not well formed.")
    return entity(whole, name)
  })

/** The text of a run of bytes: UTF-8, entities decoded, line ends as XML has them. */
export const decodeText = (bytes: Buffer, from: number, to: number): string => {
  let plain = true
  let ascii = true
  for (let i = from; i < to; i++) {
    const byte = bytes[i] ?? 0
    if (byte === AMPERSAND || byte === 13) plain = false
    else if (byte > 127) ascii = false
  }
  const text = ascii ? bytes.toString("latin1", from, to) : bytes.toString("utf8", from, to)
  return plain ? text : decodeEntities(text.replace(/\r\n?/g, "\n"))
}

const isSpace = (byte: number | undefined) => byte === 32 || byte === 10 || byte === 13 || byte === 9

interface Name {
  readonly bytes: Buffer
  /** Without its prefix. */
  readonly local: string
}

/** A string that went through an object's key is the engine's one copy, which compares by identity. */
const interned = (text: string): string => Object.keys({ [text]: 0 })[0] ?? text

/** A start tag: its name, and its attributes as ranges of the bytes. */
export class Tag {
  name = ""
  bytes: Buffer = Buffer.alloc(0)
  /** The value that `find` found. */
  from = 0
  to = 0
  count = 0
  readonly ranges: Array<number> = []

  /** Looks for an attribute by its name without prefix; its value is then `from` to `to` of `bytes`. */
  find(name: string): boolean {
    const { bytes, ranges } = this
    const length = name.length
    for (let i = 0; i < this.count; i++) {
      const start = ranges[i * 4] ?? 0
      if ((ranges[i * 4 + 1] ?? 0) - start !== length) continue
      let at = 0
      while (at < length && bytes[start + at] === name.charCodeAt(at)) at++
      if (at < length) continue
      this.from = ranges[i * 4 + 2] ?? 0
      this.to = ranges[i * 4 + 3] ?? 0
      return true
    }
    return false
  }

  /** The attribute's value, or undefined where there is none. */
  get(name: string): string | undefined {
    if (!this.find(name)) return undefined
    return decodeText(this.bytes, this.from, this.to).replace(/[\t\n]/g, " ")
  }
}

export class XmlReader {
  readonly #handler: XmlHandler
  readonly #tag = new Tag()
  readonly #names: Array<Name | undefined> = new Array(256).fill(undefined)
  readonly #open: Array<Name> = []
  #rest: Buffer = Buffer.alloc(0)
  #started = false
  #rooted = false
  #decoder: TextDecoder | undefined

  constructor(handler: XmlHandler) {
    this.#handler = handler
  }

  push(chunk: Buffer): void {
    const bytes = this.#decode(chunk)
    if (bytes === undefined) return
    const whole = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes])
    const at = this.#read(whole)
    if (whole.length - at > longestToken)
      throw new Problem("WORKBOOK_HOSTILE", "its XML has an endless token.")
    // A copy, so that a few bytes do not keep a whole chunk.
    this.#rest = Buffer.from(whole.subarray(at))
  }

  end(): void {
    if (!this.#started && this.#rest.length > 0) {
      const rest = this.#rest
      this.#rest = Buffer.alloc(0)
      this.#started = true
      this.#rest = rest.subarray(this.#read(rest))
    }
    if (this.#open.length > 0 || !this.#rooted || !this.#rest.every(isSpace))
      throw damaged("its XML ends before it is complete.")
  }

  /** Parts are UTF-8 or, rarely, UTF-16; what another encoding is declared as is taken at its word. */
  #decode(chunk: Buffer): Buffer | undefined {
    if (this.#started)
      return this.#decoder === undefined ? chunk : Buffer.from(this.#decoder.decode(chunk, { stream: true }))
    const head = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    const declared = head.indexOf(GT)
    if (declared < 0 && head.length < 1024) {
      this.#rest = head
      return undefined
    }
    this.#started = true
    this.#rest = Buffer.alloc(0)
    const label = encodingOf(head, declared)
    if (label === undefined) return head[0] === 0xef && head[1] === 0xbb ? head.subarray(3) : head
    try {
      this.#decoder = new TextDecoder(label)
    } catch {
      throw damaged("its XML has an unknown encoding.")
    }
    return Buffer.from(this.#decoder.decode(head, { stream: true }))
  }

  /** Reads whole tokens and gives the position of the first incomplete one. */
  #read(bytes: Buffer): number {
    const end = bytes.length
    let at = 0
    for (;;) {
      if (bytes[at] !== LT) {
        const from = at
        while (at < end && bytes[at] !== LT) at++
        if (at === end) return from
        if (this.#open.length > 0) this.#handler.text(bytes, from, at)
        else this.#expectSpace(bytes, from, at)
      }
      if (at + 1 >= end) return at
      const next = bytes[at + 1]
      const done =
        next === SLASH
          ? this.#closeTag(bytes, at, end)
          : next === BANG
            ? this.#declaration(bytes, at, end)
            : next === QUESTION
              ? this.#instruction(bytes, at)
              : this.#openTag(bytes, at, end)
      if (done < 0) return at
      at = done
    }
  }

  #expectSpace(bytes: Buffer, from: number, to: number) {
    for (let i = from; i < to; i++)
      if (!isSpace(bytes[i])) throw damaged("its XML has text outside its root.")
  }

  #name(bytes: Buffer, from: number, to: number): Name {
    const length = to - from
    const slot = ((length << 5) ^ (bytes[from] ?? 0) ^ ((bytes[to - 1] ?? 0) << 2)) & 255
    const known = this.#names[slot]
    if (known !== undefined && known.bytes.length === length) {
      let i = 0
      while (i < length && known.bytes[i] === bytes[from + i]) i++
      if (i === length) return known
    }
    const text = bytes.toString("utf8", from, to)
    const name = { bytes: Buffer.from(text), local: interned(text.slice(text.indexOf(":") + 1)) }
    this.#names[slot] = name
    return name
  }

  #openTag(bytes: Buffer, start: number, end: number): number {
    const tag = this.#tag
    const ranges = tag.ranges
    let at = start + 1
    while (at < end) {
      const byte = bytes[at]
      if (byte === GT || byte === SLASH || isSpace(byte)) break
      at++
    }
    if (at >= end) return -1
    const nameEnd = at
    let count = 0
    for (;;) {
      while (isSpace(bytes[at])) at++
      if (at >= end) return -1
      const byte = bytes[at]
      if (byte === GT) break
      if (byte === SLASH) {
        if (at + 1 >= end) return -1
        if (bytes[at + 1] !== GT) throw damaged("its XML is not well formed.")
        break
      }
      let from = at
      while (at < end) {
        const c = bytes[at]
        if (c === EQUALS || isSpace(c)) break
        if (c === COLON) from = at + 1
        if (c === GT || c === LT) throw damaged("its XML is not well formed.")
        at++
      }
      const to = at
      while (isSpace(bytes[at])) at++
      if (at >= end) return -1
      if (bytes[at] !== EQUALS) throw damaged("its XML is not well formed.")
      at++
      while (isSpace(bytes[at])) at++
      if (at >= end) return -1
      const quote = bytes[at]
      if (quote !== QUOTE && quote !== APOSTROPHE) throw damaged("its XML is not well formed.")
      const valueFrom = ++at
      while (at < end && bytes[at] !== quote) at++
      if (at >= end) return -1
      ranges[count * 4] = from
      ranges[count * 4 + 1] = to
      ranges[count * 4 + 2] = valueFrom
      ranges[count * 4 + 3] = at
      count++
      at++
    }
    if (nameEnd === start + 1) throw damaged("its XML is not well formed.")
    const name = this.#name(bytes, start + 1, nameEnd)
    if (this.#open.length === 0 && this.#rooted) throw damaged("its XML has more than one root.")
    this.#rooted = true
    tag.name = name.local
    tag.bytes = bytes
    tag.count = count
    this.#handler.open(tag)
    if (bytes[at] === SLASH) {
      this.#handler.close(name.local)
      return at + 2
    }
    if (this.#open.length >= deepest) throw new Problem("WORKBOOK_HOSTILE", "its XML is nested too deeply.")
    this.#open.push(name)
    return at + 1
  }

  #closeTag(bytes: Buffer, start: number, end: number): number {
    const name = this.#open[this.#open.length - 1]
    if (name === undefined) throw damaged("its XML is not well formed.")
    const length = name.bytes.length
    let at = start + 2 + length
    if (at >= end) return bytes.indexOf(GT, start) < 0 ? -1 : this.#mismatch()
    for (let i = 0; i < length; i++) if (bytes[start + 2 + i] !== name.bytes[i]) return this.#mismatch()
    while (isSpace(bytes[at])) at++
    if (at >= end) return -1
    if (bytes[at] !== GT) return this.#mismatch()
    this.#open.pop()
    this.#handler.close(name.local)
    return at + 1
  }

  #mismatch(): never {
    throw damaged("its XML has a tag that is not closed.")
  }

  #declaration(bytes: Buffer, start: number, end: number): number {
    const head = bytes.toString("latin1", start, Math.min(start + 9, end))
    if (head.startsWith("<!--")) {
      const close = bytes.indexOf("-->", start + 4)
      return close < 0 ? -1 : close + 3
    }
    if (head.length < 9) return -1
    if (head === "<![CDATA[") {
      const close = bytes.indexOf("]]>", start + 9)
      if (close < 0) return -1
      if (this.#open.length === 0) throw damaged("its XML has text outside its root.")
      this.#handler.data(bytes.toString("utf8", start + 9, close).replace(/\r\n?/g, "\n"))
      return close + 3
    }
    if (/^<!(DOCTYPE|ENTITY)/i.test(head))
      throw new Problem(
        "WORKBOOK_HOSTILE",
        "its XML declares a document type (DOCTYPE), which a workbook may not."
      )
    throw damaged("its XML is not well formed.")
  }

  #instruction(bytes: Buffer, start: number): number {
    const close = bytes.indexOf("?>", start + 2)
    return close < 0 ? -1 : close + 2
  }
}

/** Undefined means UTF-8. */
const encodingOf = (head: Buffer, declared: number): string | undefined => {
  if (head[0] === 0xff && head[1] === 0xfe) return "utf-16le"
  if (head[0] === 0xfe && head[1] === 0xff) return "utf-16be"
  if (head[0] === LT && head[1] === 0) return "utf-16le"
  if (head[0] === 0 && head[1] === LT) return "utf-16be"
  if (head[0] === 0xef && head[1] === 0xbb) return undefined
  const declaration = head.toString("latin1", 0, Math.min(declared < 0 ? head.length : declared, 1024))
  const label = /^<\?xml[^>]*?encoding\s*=\s*["']([^"']*)["']/i.exec(declaration)?.[1]?.toLowerCase()
  // UTF-16 declared, but the bytes are plain: written by a program that converted the text and not its first line.
  return label === undefined || label === "utf-8" || label === "utf8" || label.startsWith("utf-16")
    ? undefined
    : label
}

/** Reads a whole part. */
export const readXml = async (chunks: AsyncIterable<Buffer>, handler: XmlHandler): Promise<void> => {
  const reader = new XmlReader(handler)
  for await (const chunk of chunks) reader.push(chunk)
  reader.end()
}
