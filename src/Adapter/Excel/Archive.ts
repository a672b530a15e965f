/**
 * The zip container of a workbook: its directory, and parts that inflate as they are read. Nothing is ever written,
 * and a part's name is only a key, so that names which point outside mean nothing.
 */
import { crc32, createInflateRaw } from "node:zlib"
import * as yauzl from "yauzl"
import { damaged, Problem } from "./Problem.js"

export interface ArchiveLimits {
  readonly maxEntries: number
  /** Bound of one part's size when inflated, in bytes; also of what its entry may declare. */
  readonly maxPartBytes: number
}

/** How much inflated text is handed over at once. */
const chunkBytes = 64 * 1024

/** Sheets of nothing but equal cells pack to a thirtieth; what packs to less than this is a trap. */
const suspiciousRatio = 250
const suspiciousBytes = 32 * 2 ** 20

/** `/xl/./a/../workbook.xml` → `xl/workbook.xml`; part names ignore case. */
export const partKey = (name: string): string => {
  const segments: Array<string> = []
  for (const segment of name.replaceAll("\\", "/").split("/")) {
    if (segment === "" || segment === ".") continue
    if (segment === "..") segments.pop()
    else segments.push(segment)
  }
  return segments.join("/").toLowerCase()
}

export class Archive {
  readonly #zip: yauzl.ZipFile
  readonly #entries: ReadonlyMap<string, yauzl.Entry>
  readonly #limits: ArchiveLimits

  private constructor(zip: yauzl.ZipFile, entries: ReadonlyMap<string, yauzl.Entry>, limits: ArchiveLimits) {
    this.#zip = zip
    this.#entries = entries
    this.#limits = limits
  }

  /** Reads the directory of an open file, which stays the caller's to close. */
  static async open(descriptor: number, limits: ArchiveLimits): Promise<Archive> {
    const entries = new Map<string, yauzl.Entry>()
    try {
      const zip = await yauzl.fromFdPromise(descriptor, { autoClose: false, decodeStrings: false })
      if (zip.entryCount > limits.maxEntries)
        throw new Problem("WORKBOOK_HOSTILE", `it holds more than ${limits.maxEntries} parts.`)
      for await (const entry of zip.eachEntry()) {
        const name = entry.fileNameRaw.toString("utf8")
        // An entry that climbs out of the archive is no part; of two with one name the first is meant.
        if (/(^|[\\/])\.\.([\\/]|$)/.test(name) || name.endsWith("/")) continue
        const key = partKey(name)
        if (!entries.has(key)) entries.set(key, entry)
      }
      return new Archive(zip, entries, limits)
    } catch (error) {
      throw problemOf(error)
    }
  }

  has(name: string): boolean {
    return this.#entries.has(partKey(name))
  }

  get names(): Iterable<string> {
    return this.#entries.keys()
  }

  /** The bytes of a part, inflated and checked as they come. Leaving the loop early stops the reading. */
  async *read(name: string): AsyncGenerator<Buffer, void, undefined> {
    const entry = this.#entries.get(partKey(name))
    if (entry === undefined) throw damaged("a part that it names is missing.")
    const { compressionMethod, uncompressedSize } = entry
    if (entry.isEncrypted()) throw new Problem("WORKBOOK_ENCRYPTED", "its parts are protected by a password.")
    if (compressionMethod !== 0 && compressionMethod !== 8)
      throw damaged("a part is compressed in a way that workbooks do not use.")
    if (uncompressedSize > this.#limits.maxPartBytes) throw tooLarge(this.#limits)
    if (uncompressedSize > suspiciousBytes && uncompressedSize > entry.compressedSize * suspiciousRatio)
      throw new Problem(
        "WORKBOOK_HOSTILE",
        "a part is packed so tightly that it can only be meant to do harm."
      )
    let size = 0
    let checksum = 0
    try {
      const raw = await this.#zip.openReadStreamPromise(entry, { decodeFileData: false })
      const bytes = compressionMethod === 0 ? raw : inflate(raw)
      try {
        for await (const chunk of bytes) {
          size += chunk.length
          if (size > uncompressedSize) throw damaged("a part is larger than it says.")
          checksum = crc32(chunk, checksum)
          yield chunk
        }
      } finally {
        bytes.destroy()
        raw.destroy()
      }
    } catch (error) {
      throw problemOf(error)
    }
    if (size !== uncompressedSize) throw damaged("a part is shorter than it says.")
    if (checksum !== entry.crc32) throw damaged("the checksum of a part does not fit.")
  }
}

const inflate = (raw: NodeJS.ReadableStream) => {
  const inflated = createInflateRaw({ chunkSize: chunkBytes })
  raw.on("error", (error) => inflated.destroy(error))
  raw.pipe(inflated)
  return inflated
}

const tooLarge = ({ maxPartBytes }: ArchiveLimits) =>
  new Problem(
    "WORKBOOK_TOO_LARGE",
    `a part holds more than ${Math.floor(maxPartBytes / 2 ** 20)} MiB when it is unpacked.`
  )

/** What zlib and the directory reader say, in this project's words. */
const problemOf = (error: unknown): Error => {
  if (error instanceof Problem || !(error instanceof Error))
    return error instanceof Error ? error : damaged("")
  const code = "code" in error && typeof error.code === "string" ? error.code : ""
  if (/^Z_|^ERR_.*ZLIB|^ERR_BUFFER/.test(code)) return damaged("its compressed data are invalid.")
  if (/end of central directory|unexpected EOF|overflows file bounds/i.test(error.message))
    return new Problem("WORKBOOK_TRUNCATED", "it is cut off, or damaged at its end.")
  // Errors of the file system itself keep their code.
  if (/^E[A-Z]+$/.test(code)) return error
  return damaged(`its zip directory is invalid.`)
}
