/** Delimited text (`.csv`, `.tsv`) as a workbook of one sheet, whose cells are texts that say what they could be. */
import { closeSync, createReadStream, openSync, readSync } from "node:fs"
import { basename, extname } from "node:path"
import { pipeline } from "node:stream/promises"
import { TextDecoder } from "node:util"
import { CsvError, type Options, parse } from "csv-parse"
import { withoutTrailingZeros } from "../../Digits.js"
import type { Book } from "./Book.js"
import { Replaced } from "./Book.js"
import { checkTextHead, type Identity, identityOfDescriptor } from "./File.js"
import { Problem } from "./Problem.js"
import { SheetRow } from "./SheetReader.js"
import { Kind } from "./Value.js"

/** Longest record, in characters: a quote that is never closed must not take all memory. */
const longestRecord = 16 * 2 ** 20

/** A table has far fewer columns; more are no table at all. */
const mostFields = 65_536

const readHead = (descriptor: number, length: number): Buffer => {
  const head = Buffer.alloc(length)
  return head.subarray(0, readSync(descriptor, head, 0, length, 0))
}

type Encoding = "utf-8" | "utf-16le" | "utf-16be" | "windows-1252"

/** By byte order mark; without one by the zero bytes of UTF-16, then UTF-8 where the whole file is, else Windows-1252. */
const encodingOf = (descriptor: number): Encoding => {
  const head = readHead(descriptor, 4096)
  if (head[0] === 0xff && head[1] === 0xfe) return "utf-16le"
  if (head[0] === 0xfe && head[1] === 0xff) return "utf-16be"
  if (head[0] === 0xef && head[1] === 0xbb && head[2] === 0xbf) return "utf-8"
  const zeros = (parity: number) => head.filter((byte, at) => byte === 0 && at % 2 === parity).length
  const [even, odd] = [zeros(0), zeros(1)]
  if (odd > head.length / 8 && even === 0) return "utf-16le"
  if (even > head.length / 8 && odd === 0) return "utf-16be"
  const decoder = new TextDecoder("utf-8", { fatal: true })
  const block = Buffer.alloc(2 ** 20)
  try {
    for (let at = 0; ; ) {
      const length = readSync(descriptor, block, 0, block.length, at)
      decoder.decode(block.subarray(0, length), { stream: length > 0 })
      if (length === 0) return "utf-8"
      at += length
    }
  } catch {
    return "windows-1252"
  }
}

/** Counts a character outside quotes in the first line. */
const countOf = (line: string, wanted: string): number => {
  let quoted = false
  let count = 0
  for (const c of line) {
    if (c === '"') quoted = !quoted
    else if (c === wanted && !quoted) count++
  }
  return count
}

interface Dialect {
  readonly encoding: Encoding
  readonly delimiter: string
  /** Whether the first line is Excel's `sep=;`. */
  readonly declared: boolean
}

/** A comma, or a tab in a `.tsv`; another one only where the first line has none of these. */
const dialectOf = (descriptor: number, file: string): Dialect => {
  const encoding = encodingOf(descriptor)
  const head = new TextDecoder(encoding).decode(readHead(descriptor, 64 * 1024))
  const line = /^[^\r\n]*/.exec(head)?.[0] ?? ""
  const declaration = /^sep=(.)$/i.exec(line)?.[1]
  if (declaration !== undefined) return { encoding, delimiter: declaration, declared: true }
  const usual = extname(file).toLowerCase() === ".tsv" ? "\t" : ","
  const others = [",", ";", "\t", "|"].filter((each) => each !== usual)
  const best = others.reduce((a, b) => (countOf(line, b) > countOf(line, a) ? b : a))
  const delimiter = countOf(line, usual) === 0 && countOf(line, best) > 0 ? best : usual
  return { encoding, delimiter, declared: false }
}

const numeral = /^-?(?:0|[1-9]\d*)(\.\d+)?(?:[eE][+-]?\d+)?$/
const moment =
  /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?:[T ](?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?)?$/
const int64Max = 9_223_372_036_854_775_807n

/** The digits that count, without point, exponent and zeros at either end. */
const significant = (text: string) =>
  withoutTrailingZeros(
    text
      .replace(/[eE].*$/, "")
      .replace(/[-.]/g, "")
      .replace(/^0+/, "")
  )

/** What a text could be. A number that a column could not keep exactly is text. */
export const kindOfText = (text: string): number => {
  const found = numeral.exec(text)
  if (found !== null) {
    if (found[1] === undefined && !/[eE]/.test(text)) {
      // The sign and 19 digits at most.
      if (text.length > 20) return Kind.text
      const value = BigInt(text)
      return value <= int64Max && value >= -int64Max - 1n ? Kind.integer : Kind.text
    }
    const digits = significant(text)
    const value = Number(text)
    return Number.isFinite(value) && (digits.length <= 15 || digits === significant(String(value)))
      ? Kind.real
      : Kind.text
  }
  return moment.test(text) ? Kind.moment : Kind.text
}

/** Bad bytes of UTF-16 become U+FFFD, which an answer notes. */
async function* decoded(chunks: AsyncIterable<Buffer>, encoding: Encoding) {
  const decoder = new TextDecoder(encoding)
  for await (const chunk of chunks) yield decoder.decode(chunk, { stream: true })
  yield decoder.decode()
}

const problemOf = (error: unknown): unknown => {
  if (!(error instanceof CsvError)) return error
  const line = typeof error["lines"] === "number" ? ` near line ${error["lines"]}` : ""
  return error.code === "CSV_QUOTE_NOT_CLOSED"
    ? new Problem("TEXT_UNREADABLE", `a quote is opened and never closed${line}.`)
    : new Problem("TEXT_UNREADABLE", `a record is longer than it may be, or wrongly quoted${line}.`)
}

/** Opens delimited text; the sheet is called like the file. */
export const openDelimited = async (file: string, identity: Identity): Promise<Book> => {
  const withDescriptor = <A>(use: (descriptor: number) => A): A => {
    const descriptor = openSync(file, "r")
    try {
      if (identityOfDescriptor(descriptor) !== identity) throw new Replaced()
      return use(descriptor)
    } finally {
      closeSync(descriptor)
    }
  }
  const dialect = withDescriptor((descriptor) => {
    checkTextHead(descriptor)
    return dialectOf(descriptor, file)
  })
  const name = basename(file, extname(file)).replaceAll("\u0000", "\ufffd")
  return {
    inventory: { sheets: [{ name, hidden: false, part: "" }], tables: [], names: [] },
    textsAreParsed: true,
    read: async (_, wish) => {
      const options: Options = {
        delimiter: dialect.delimiter,
        // Each ends a line, also where files of several systems were put together.
        record_delimiter: ["\r\n", "\n", "\r"],
        relax_column_count: true,
        relax_quotes: true,
        max_record_size: longestRecord,
        from: dialect.declared ? 2 : 1
      }
      const parser = parse(options)
      const row = new SheetRow()
      let number = 0
      // A fault of the file ends the parser, and comes out of the loop below.
      const fed = pipeline(
        createReadStream(file, { highWaterMark: 256 * 1024 }),
        (chunks: AsyncIterable<Buffer>) => decoded(chunks, dialect.encoding),
        parser
      ).catch(() => {})
      try {
        for await (const record of parser as AsyncIterable<ReadonlyArray<string>>) {
          number++
          row.number = number
          row.count = 0
          if (record.length > mostFields)
            throw new Problem("TEXT_UNREADABLE", `record ${number} has more than ${mostFields} fields.`)
          for (let at = 0; at < record.length; at++) {
            const text = record[at]
            if (text === undefined || text === "") continue
            row.columns[row.count] = at + 1
            row.values[row.count] = text
            row.kinds[row.count] = kindOfText(text)
            row.count++
          }
          if (row.count === 0) continue
          if (number > wish.bottom) return true
          wish.row(row)
        }
        return false
      } catch (error) {
        throw problemOf(error)
      } finally {
        parser.destroy()
        await fed
      }
    }
  }
}
