/** The file itself: whether it is there, whether it changed, and what it is by its first bytes. */

import { isUtf8 } from "node:buffer"
import { accessSync, constants, fstatSync, readSync, statSync } from "node:fs"
import { Refused } from "../Sqlite/Execute.js"
import { Problem } from "./Problem.js"

const refuse = (code: string, message: string): never => {
  throw new Refused({ stage: "open", code, message })
}

/** Changes whenever the file is written or another one takes its place. */
export type Identity = string

const identity = (stat: {
  dev: bigint
  ino: bigint
  size: bigint
  mtimeNs: bigint
  ctimeNs: bigint
}): Identity => [stat.dev, stat.ino, stat.size, stat.mtimeNs, stat.ctimeNs].join(":")

/** The identity of the file under this path, which must be a readable regular file. */
export const identityOf = (path: string): Identity => {
  try {
    const stat = statSync(path, { bigint: true })
    if (stat.isDirectory()) return refuse("EISDIR", "It is a folder.")
    if (!stat.isFile()) return refuse("NOT_A_FILE", "It is no regular file.")
    accessSync(path, constants.R_OK)
    return identity(stat)
  } catch (error) {
    if (error instanceof Refused) throw error
    const code = error instanceof Error && "code" in error ? String(error.code) : "UNKNOWN"
    return refuse(code, error instanceof Error ? error.message : String(error))
  }
}

export const identityOfDescriptor = (descriptor: number): Identity =>
  identity(fstatSync(descriptor, { bigint: true }))

const headBytes = 4096

const headOf = (descriptor: number): Buffer => {
  const head = Buffer.alloc(headBytes)
  return head.subarray(0, readSync(descriptor, head, 0, headBytes, 0))
}

const utf16 = (text: string) => Buffer.from(text, "utf16le")

/** Looks for a text anywhere in an OLE file, whose directory may stand anywhere. */
const holds = (descriptor: number, text: Buffer): boolean => {
  const block = Buffer.alloc(2 ** 20)
  for (let at = 0; at < 256 * 2 ** 20; ) {
    const length = readSync(descriptor, block, 0, block.length, at)
    if (block.subarray(0, length).includes(text)) return true
    if (length < block.length) return false
    at += length - text.length
  }
  return false
}

const isOle = (head: Buffer) => head.subarray(0, 8).equals(Buffer.from("d0cf11e0a1b11ae1", "hex"))
const isZip = (head: Buffer) => head[0] === 0x50 && head[1] === 0x4b && (head[2] === 3 || head[2] === 5)

/** A character cut at the end of the head is no fault. */
const looksLikeText = (head: Buffer) =>
  !head.includes(0) && [0, 1, 2, 3].some((cut) => isUtf8(head.subarray(0, head.length - cut)))

const oleProblem = (descriptor: number): Problem => {
  if (holds(descriptor, utf16("EncryptedPackage")))
    return new Problem("WORKBOOK_ENCRYPTED", "it is protected by a password (encrypted).")
  if (holds(descriptor, utf16("WordDocument")))
    return new Problem("NOT_A_WORKBOOK", "it is an old Word document, not a workbook.")
  return new Problem("WORKBOOK_XLS", "it is in the old binary format of Excel 97-2003 (.xls).")
}

const textProblem = (head: Buffer): Problem => {
  const text = head
    .toString("latin1")
    .replace(/^\xef\xbb\xbf/, "")
    .trimStart()
  const kind = /^<(!doctype html|html|table|head|body)/i.test(text)
    ? "an HTML page"
    : /^<\?xml|^<Workbook/i.test(text)
      ? /urn:schemas-microsoft-com:office:spreadsheet/.test(text)
        ? "an XML spreadsheet of 2003"
        : "an XML file"
      : /^\{\\rtf/.test(text)
        ? "an RTF document"
        : "a text file"
  return new Problem("NOT_A_WORKBOOK", `it is ${kind}, not a workbook.`)
}

/** Refuses what is no zip container, by what it is. */
export const checkWorkbookHead = (descriptor: number): void => {
  const head = headOf(descriptor)
  if (head.length === 0) throw new Problem("WORKBOOK_EMPTY", "it is empty (0 bytes), not a workbook.")
  if (isZip(head)) return
  if (isOle(head)) throw oleProblem(descriptor)
  if (head.subarray(0, 5).toString("latin1") === "%PDF-")
    throw new Problem("NOT_A_WORKBOOK", "it is a PDF document, not a workbook.")
  // The BIFF of Excel before 97 has no container.
  if (head[0] === 9 && (head[1] ?? 0) <= 8 && head[2] === (head[1] === 8 ? 16 : 4))
    throw new Problem("WORKBOOK_XLS", "it is in an old binary format of Excel (.xls).")
  throw looksLikeText(head) ? textProblem(head) : new Problem("NOT_A_WORKBOOK", "it is not a workbook.")
}

/** Refuses what is no text, by what it is. */
export const checkTextHead = (descriptor: number): void => {
  const head = headOf(descriptor)
  if (isZip(head) || isOle(head))
    throw new Problem("TEXT_UNREADABLE", "it is a workbook or an archive, not delimited text.")
  if (head.subarray(0, 5).toString("latin1") === "%PDF-")
    throw new Problem("TEXT_UNREADABLE", "it is a PDF document, not delimited text.")
}
