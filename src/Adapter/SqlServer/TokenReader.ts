/**
 * Reads the tokens of an answer as the driver does, except for rows: their values become cells by the table in
 * `Value.ts`, and a large value is never held whole. This is the one place that depends on how the driver reads.
 */
import { EventEmitter } from "node:events"
import { Readable } from "node:stream"
import { setImmediate as nextTurn } from "node:timers/promises"
import type { ColumnMetadata } from "tedious/lib/token/colmetadata-token-parser.js"
import type { TokenHandler } from "tedious/lib/token/handler.js"
import StreamParserModule from "tedious/lib/token/stream-parser.js"
import { NBCRowToken, RowToken, type Token } from "tedious/lib/token/token.js"
import type { Parser as TokenStreamParser } from "tedious/lib/token/token-stream-parser.js"
import type { Cell } from "../../Rows.js"
import { LargeValue } from "./LargeValue.js"
import { type Reading, readingOf } from "./Value.js"

// The driver's CommonJS module is the class itself, although its types put the class under `default`.
const StreamParser = StreamParserModule as unknown as typeof StreamParserModule.default

const nullOfChunks = 0xffff_ffff_ffff_ffffn
const unknownLength = 0xffff_ffff_ffff_fffen
const nullOfShort = 0xffff

/**
 * So long, in milliseconds, rows are read at a stretch. What has arrived reaches the reader without a turn of the event
 * loop, half a second of it at once where the engine is fast, and every other call would have to wait for that.
 */
const stretchMs = 5

const readingOfColumn = (column: ColumnMetadata): Reading =>
  readingOf({
    name: column.type.name,
    userType: column.userType,
    length: column.dataLength,
    scale: column.scale,
    codepage: column.collation?.codepage,
    clrType: column.udtInfo?.typeName
  })

/** A column as an answer names it. */
export interface ReadColumn {
  readonly name: string
  readonly type: string
}

export const readColumns = (columns: ReadonlyArray<ColumnMetadata>): ReadonlyArray<ReadColumn> =>
  columns.map((column) => ({ name: column.colName, type: readingOfColumn(column).type }))

export class TokenReader extends StreamParser {
  #readings: ReadonlyArray<Reading> = []
  readonly #keep: number
  #stretchFrom = performance.now()

  /** `keep` is how many bytes of one value are held at most. */
  constructor(
    message: AsyncIterable<Buffer>,
    debug: TokenReader["debug"],
    options: TokenReader["options"],
    keep: number
  ) {
    super(message, debug, options)
    this.#keep = keep
  }

  /** Takes the next piece of the message; false when it is complete. */
  async more(): Promise<boolean> {
    if (performance.now() - this.#stretchFrom > stretchMs) {
      await nextTurn()
      this.#stretchFrom = performance.now()
    }
    const { done, value } = await this.iterator.next()
    if (done === true) return false
    const rest = this.buffer.subarray(this.position)
    this.buffer = rest.length === 0 ? value : Buffer.concat([rest, value])
    this.position = 0
    return true
  }

  override async waitForChunk(): Promise<void> {
    if (!(await this.more())) throw new Error("The answer ended inside a token")
  }

  override async readColMetadataToken() {
    const token = await super.readColMetadataToken()
    this.colMetadata = token.columns
    this.#readings = token.columns.map(readingOfColumn)
    return token
  }

  override readRowToken(): RowToken | Promise<RowToken> {
    const cells: Array<Cell> = []
    return this.#readCells(cells, undefined)
      ? new RowToken(cells)
      : this.#readRest(cells, undefined).then(() => new RowToken(cells))
  }

  override async readNbcRowToken(): Promise<NBCRowToken> {
    const size = Math.ceil(this.#readings.length / 8)
    while (this.#available < size) await this.waitForChunk()
    const nulls = Buffer.from(this.buffer.subarray(this.position, this.position + size))
    this.position += size
    const cells: Array<Cell> = []
    if (!this.#readCells(cells, nulls)) await this.#readRest(cells, nulls)
    return new NBCRowToken(cells)
  }

  get #available(): number {
    return this.buffer.length - this.position
  }

  /** Reads on to the row's end with what is there; false where more must come, or a value that comes in pieces. */
  #readCells(cells: Array<Cell>, nulls: Buffer | undefined): boolean {
    for (let i = cells.length; i < this.#readings.length; i++) {
      const reading = this.#readings[i]
      if (reading === undefined) return false
      if (nulls !== undefined && (nulls[i >> 3] ?? 0) & (1 << (i & 7))) {
        cells.push(null)
        continue
      }
      const cell = this.#readCell(reading)
      if (cell === undefined) return false
      cells.push(cell)
    }
    return true
  }

  async #readRest(cells: Array<Cell>, nulls: Buffer | undefined): Promise<void> {
    while (!this.#readCells(cells, nulls)) {
      const reading = this.#readings[cells.length]
      if (reading?.framing.kind === "chunks") cells.push(await this.#readChunks(reading))
      else if (reading?.framing.kind === "pointer") cells.push(await this.#readPointed(reading))
      else await this.waitForChunk()
    }
  }

  /** The next value, if all of it is there. */
  #readCell({ decode, framing }: Reading): Cell | undefined {
    const { buffer, position } = this
    switch (framing.kind) {
      case "fixed":
        return this.#cut(0, framing.size, decode)
      case "byte": {
        if (this.#available < 1) return undefined
        const size = buffer.readUInt8(position)
        return size === 0 ? this.#skip(1) : this.#cut(1, size, decode)
      }
      case "short": {
        if (this.#available < 2) return undefined
        const size = buffer.readUInt16LE(position)
        return size === nullOfShort ? this.#skip(2) : this.#cut(2, size, decode)
      }
      case "long": {
        if (this.#available < 4) return undefined
        const size = buffer.readUInt32LE(position)
        return size === 0 ? this.#skip(4) : this.#cut(4, size, decode)
      }
      default:
        return undefined
    }
  }

  #skip(bytes: number): null {
    this.position += bytes
    return null
  }

  #cut(header: number, size: number, decode: Reading["decode"]): Cell | undefined {
    if (this.#available < header + size) return undefined
    const from = this.position + header
    this.position = from + size
    return decode(this.buffer.subarray(from, from + size))
  }

  async #take(bytes: number): Promise<Buffer> {
    while (this.#available < bytes) await this.waitForChunk()
    const from = this.position
    this.position = from + bytes
    return this.buffer.subarray(from, from + bytes)
  }

  async #feed(value: LargeValue, size: number): Promise<void> {
    for (let rest = size; rest > 0; ) {
      if (this.#available === 0) await this.waitForChunk()
      const piece = await this.#take(Math.min(rest, this.#available))
      value.add(piece)
      rest -= piece.length
    }
  }

  async #readChunks(reading: Reading): Promise<Cell> {
    const expected = (await this.#take(8)).readBigUInt64LE(0)
    if (expected === nullOfChunks) return null
    const value = new LargeValue(reading, this.#keep)
    let total = 0n
    for (;;) {
      const size = (await this.#take(4)).readUInt32LE(0)
      if (size === 0) break
      total += BigInt(size)
      await this.#feed(value, size)
    }
    if (expected !== unknownLength && expected !== total)
      throw new Error(`A value of ${expected} bytes came with ${total}`)
    return value.value()
  }

  /** text, ntext and image: a pointer and a timestamp stand before the value. */
  async #readPointed(reading: Reading): Promise<Cell> {
    const pointer = (await this.#take(1)).readUInt8(0)
    if (pointer === 0) return null
    await this.#take(pointer + 8)
    const size = (await this.#take(4)).readUInt32LE(0)
    const value = new LargeValue(reading, this.#keep)
    await this.#feed(value, size)
    return value.value()
  }
}

/** The tokens of an answer, all that are whole in a piece of it at once: a promise for each would cost more than its reading. */
async function* tokensOf(reader: TokenReader): AsyncGenerator<ReadonlyArray<Token>> {
  while (await reader.more()) {
    let whole: Array<Token> = []
    while (reader.position < reader.buffer.length) {
      const type = reader.buffer.readUInt8(reader.position)
      reader.position++
      const read = reader.readToken(type)
      if (!(read instanceof Promise)) {
        if (read !== undefined) whole.push(read)
        continue
      }
      // Where nobody reads on after this, nobody hears either that the answer ended inside the token.
      read.catch(() => {})
      if (whole.length > 0) yield whole
      const token = await read
      whole = token === undefined ? [] : [token]
    }
    if (whole.length > 0) yield whole
  }
}

/** The connection that an answer comes on. */
export interface Source {
  /** Nobody waits for the answer any more. */
  readonly isOver: () => boolean
  readonly fail: (error: Error) => void
}

/**
 * What the driver reads an answer from. Where its own ends the process on bytes it does not know, this calls `fail`; and
 * a connection that is over hears nothing more of an answer, whose end would find no request there.
 */
export class TokenStream extends EventEmitter implements TokenStreamParser {
  readonly debug: TokenReader["debug"]
  readonly options: TokenReader["options"]
  readonly parser: Readable

  constructor(reader: TokenReader, handler: TokenHandler, { fail, isOver }: Source) {
    super()
    this.debug = reader.debug
    this.options = reader.options
    this.parser = Readable.from(tokensOf(reader))
    this.parser.on("data", (tokens: ReadonlyArray<Token>) => {
      try {
        for (const token of tokens) {
          if (isOver()) return void this.parser.destroy()
          const handle: unknown = Reflect.get(handler, token.handlerName)
          if (typeof handle !== "function") throw new Error(`No handler of ${token.name}`)
          Reflect.apply(handle, handler, [token])
        }
      } catch (error) {
        this.parser.destroy(error instanceof Error ? error : new Error(String(error)))
      }
    })
    this.parser.on("error", fail)
    this.parser.on("drain", () => this.emit("drain"))
    this.parser.on("end", () => {
      if (!isOver()) this.emit("end")
    })
  }

  pause(): Readable {
    return this.parser.pause()
  }

  resume(): Readable {
    return this.parser.resume()
  }
}
