/** The workbook part: its sheets, its defined names, its date system. And the tables that its sheets have. */
import type { Archive } from "./Archive.js"
import { damaged, Problem } from "./Problem.js"
import { parseRange, type Range } from "./Reference.js"
import { readRelationships } from "./Relationships.js"
import { decodeEscapes } from "./Value.js"
import { decodeText, readXml } from "./Xml.js"

export interface Sheet {
  readonly name: string
  readonly hidden: boolean
  readonly part: string
}

export interface DefinedName {
  readonly name: string
  /** The sheet that it belongs to; null where it belongs to the whole workbook. */
  readonly scope: string | null
  /** As the file has it, say `Data!$A$1:$C$9`. */
  readonly refersTo: string
}

export interface WorkbookPart {
  /** Worksheets in order. Chart sheets, dialog sheets and macro sheets hold no rows and are left out. */
  readonly sheets: ReadonlyArray<Sheet>
  readonly names: ReadonlyArray<DefinedName>
  readonly date1904: boolean
  readonly stylesPart: string | undefined
  readonly stringsPart: string | undefined
}

export interface Table {
  readonly name: string
  readonly sheet: string
  readonly range: Range
  readonly headerRows: number
  readonly totalsRows: number
  readonly columns: ReadonlyArray<string>
}

/** A NUL would end an SQL identifier. */
const cleanName = (text: string) => decodeEscapes(text).replaceAll("\u0000", "\ufffd")

const isTrue = (text: string | undefined) => text === "1" || text === "true" || text === "on"

/** What a package is when it is no workbook. */
const otherPackage = (archive: Archive): Problem => {
  const names = [...archive.names]
  if (archive.has("word/document.xml"))
    return new Problem("NOT_A_WORKBOOK", "it is a Word document, not a workbook.")
  if (archive.has("ppt/presentation.xml"))
    return new Problem("NOT_A_WORKBOOK", "it is a PowerPoint presentation, not a workbook.")
  if (names.some((name) => name.endsWith(".iwa")))
    return new Problem("NOT_A_WORKBOOK", "it is a Numbers document, not an .xlsx workbook.")
  return new Problem("NOT_A_WORKBOOK", "it is a zip archive, not a workbook.")
}

const readOpenDocument = async (archive: Archive): Promise<Problem | undefined> => {
  if (!archive.has("mimetype")) return undefined
  let type = ""
  for await (const chunk of archive.read("mimetype")) type += chunk.toString("latin1")
  return /opendocument\.spreadsheet/.test(type)
    ? new Problem("WORKBOOK_ODS", "it is an OpenDocument spreadsheet (.ods).")
    : /opendocument/.test(type)
      ? new Problem("NOT_A_WORKBOOK", "it is an OpenDocument file, not a workbook.")
      : undefined
}

export const readWorkbookPart = async (archive: Archive): Promise<WorkbookPart> => {
  const openDocument = await readOpenDocument(archive)
  if (openDocument !== undefined) throw openDocument
  const root = await readRelationships(archive, "")
  const part = root.find(({ type }) => type === "officeDocument")?.target
  if (part === undefined) throw otherPackage(archive)
  if (/\.bin$/i.test(part)) throw new Problem("WORKBOOK_XLSB", "it is an Excel binary workbook (.xlsb).")
  if (!archive.has(part)) throw damaged("its workbook part is missing.")
  const relationships = new Map((await readRelationships(archive, part)).map((each) => [each.id, each]))
  const byType = (wanted: string) => {
    for (const { target, type } of relationships.values())
      if (type === wanted && archive.has(target)) return target
    return undefined
  }

  const listed: Array<{ name: string; hidden: boolean; id: string }> = []
  const names: Array<{ name: string; local: string | undefined; refersTo: string }> = []
  let date1904 = false
  let rootName = ""
  let inName = false
  let inSheets = false
  const take = (text: string) => {
    const current = names.at(-1)
    if (inName && current !== undefined) current.refersTo += text
  }
  await readXml(archive.read(part), {
    open: (tag) => {
      rootName ||= tag.name
      if (tag.name === "workbookPr") date1904 = isTrue(tag.get("date1904"))
      else if (tag.name === "sheets") inSheets = true
      else if (tag.name === "sheet" && inSheets) {
        const state = tag.get("state")
        listed.push({
          name: cleanName(tag.get("name") ?? ""),
          hidden: state === "hidden" || state === "veryHidden",
          id: tag.get("id") ?? ""
        })
      } else if (tag.name === "definedName") {
        inName = true
        names.push({ name: cleanName(tag.get("name") ?? ""), local: tag.get("localSheetId"), refersTo: "" })
      }
    },
    close: (name) => {
      if (name === "definedName") inName = false
      else if (name === "sheets") inSheets = false
    },
    text: (bytes, from, to) => {
      if (inName) take(decodeText(bytes, from, to))
    },
    data: take
  })
  if (rootName !== "workbook") throw otherPackage(archive)

  const sheets: Array<Sheet> = []
  for (const { hidden, id, name } of listed) {
    const relationship = relationships.get(id)
    if (relationship === undefined)
      throw damaged(`the part of a sheet cannot be found: a relationship is missing.`)
    if (relationship.type === "worksheet") sheets.push({ name, hidden, part: relationship.target })
  }
  return {
    sheets,
    names: names.map(({ local, name, refersTo }) => ({
      name,
      scope: local === undefined ? null : (listed[Number(local)]?.name ?? null),
      refersTo: refersTo.trim()
    })),
    date1904,
    stylesPart: byType("styles"),
    stringsPart: byType("sharedStrings")
  }
}

const readTable = async (archive: Archive, part: string, sheet: string): Promise<Table | undefined> => {
  let table: Omit<Table, "columns"> | undefined
  const columns: Array<string> = []
  await readXml(archive.read(part), {
    open: (tag) => {
      if (tag.name === "table" && table === undefined) {
        const range = parseRange(tag.get("ref") ?? "")
        if (range === undefined) return
        table = {
          name: cleanName(tag.get("displayName") ?? tag.get("name") ?? ""),
          sheet,
          range,
          headerRows: Number(tag.get("headerRowCount") ?? 1),
          totalsRows: Number(tag.get("totalsRowCount") ?? 0)
        }
      } else if (tag.name === "tableColumn") columns.push(cleanName(tag.get("name") ?? ""))
    },
    close: () => {},
    text: () => {},
    data: () => {}
  })
  return table === undefined ? undefined : { ...table, columns }
}

/** The tables of all sheets, in order. A part that is not there is no table. */
export const readTables = async (
  archive: Archive,
  sheets: ReadonlyArray<Sheet>
): Promise<ReadonlyArray<Table>> => {
  const tables: Array<Table> = []
  for (const { name, part } of sheets) {
    if (!archive.has(part)) continue
    for (const { target, type } of await readRelationships(archive, part)) {
      if (type !== "table" || !archive.has(target)) continue
      const table = await readTable(archive, target, name)
      if (table !== undefined) tables.push(table)
    }
  }
  return tables
}
