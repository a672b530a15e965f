/** A file whose sheets can be read: a workbook, or delimited text as a workbook of one sheet. */
import { closeSync, openSync } from "node:fs"
import { Archive, type ArchiveLimits } from "./Archive.js"
import { checkWorkbookHead, type Identity, identityOfDescriptor } from "./File.js"
import type { Inventory } from "./Names.js"
import { readSharedStrings, type SharedStrings } from "./SharedStrings.js"
import { readSheet, type SheetContext, type SheetWish } from "./SheetReader.js"
import { readStyles } from "./Styles.js"
import { readTables, readWorkbookPart, type Sheet, type WorkbookPart } from "./WorkbookPart.js"

export interface Book {
  readonly inventory: Inventory
  /** Whether texts become numbers where a whole column agrees. */
  readonly textsAreParsed: boolean
  /** Reads a sheet; true where a row behind the wished ones holds something. */
  readonly read: (sheet: Sheet, wish: SheetWish) => Promise<boolean>
}

/** The file is not the one that was opened before. */
export class Replaced extends Error {}

const limits: ArchiveLimits = { maxEntries: 20_000, maxPartBytes: 4 * 2 ** 30 }

/** Opens the file for one use, so that it is not held between calls. */
const withArchive = async <A>(
  file: string,
  identity: Identity,
  use: (archive: Archive) => Promise<A>
): Promise<A> => {
  const descriptor = openSync(file, "r")
  try {
    if (identityOfDescriptor(descriptor) !== identity) throw new Replaced()
    checkWorkbookHead(descriptor)
    return await use(await Archive.open(descriptor, limits))
  } finally {
    closeSync(descriptor)
  }
}

export const openWorkbook = (file: string, identity: Identity): Promise<Book> =>
  withArchive(file, identity, async (archive) => {
    const workbook = await readWorkbookPart(archive)
    const tables = await readTables(archive, workbook.sheets)
    const styles = workbook.stylesPart === undefined ? [] : await readStyles(archive, workbook.stylesPart)
    let strings: SharedStrings | undefined
    const contextOf = async (
      source: Archive,
      { date1904, stringsPart }: WorkbookPart
    ): Promise<SheetContext> => {
      if (stringsPart !== undefined) strings ??= await readSharedStrings(source, stringsPart)
      return { strings, styles, date1904 }
    }
    return {
      inventory: { sheets: workbook.sheets, tables, names: workbook.names },
      textsAreParsed: false,
      read: (sheet, wish) =>
        withArchive(file, identity, async (source) =>
          readSheet(source, sheet.part, await contextOf(source, workbook), wish)
        )
    }
  })
