/** The parts of a small workbook, to be put into a zip as they are or with some of them changed. */
import type { ZipEntry } from "./Zip.js"

const main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
const relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
const packageRelations = "http://schemas.openxmlformats.org/package/2006/relationships"

const relationship = (id: string, type: string, target: string) =>
  `<Relationship Id="${id}" Type="${relations}/${type}" Target="${target}"/>`

const relationships = (...all: ReadonlyArray<string>) =>
  `<Relationships xmlns="${packageRelations}">${all.join("")}</Relationships>`

/** `<sheetData>` of one sheet; text cells are inline. */
export const sheetXml = (data: string, behind = "") =>
  `<worksheet xmlns="${main}" xmlns:r="${relations}"><sheetData>${data}</sheetData>${behind}</worksheet>`

export interface Parts {
  /** The inside of `<sheetData>`, by sheet name. */
  readonly sheets: Readonly<Record<string, string>>
  /** The inside of `<sst>`. */
  readonly strings?: string
  /** The inside of `<definedNames>`. */
  readonly names?: string
}

export const parts = ({ names, sheets, strings }: Parts): ReadonlyArray<ZipEntry> => {
  const all = Object.entries(sheets)
  return [
    {
      name: "_rels/.rels",
      content: relationships(relationship("rId1", "officeDocument", "xl/workbook.xml"))
    },
    {
      name: "xl/workbook.xml",
      content: `<workbook xmlns="${main}" xmlns:r="${relations}"><sheets>${all
        .map(([name], at) => `<sheet name="${name}" sheetId="${at + 1}" r:id="s${at}"/>`)
        .join("")}</sheets>${names === undefined ? "" : `<definedNames>${names}</definedNames>`}</workbook>`
    },
    {
      name: "xl/_rels/workbook.xml.rels",
      content: relationships(
        ...all.map((_, at) => relationship(`s${at}`, "worksheet", `worksheets/sheet${at + 1}.xml`)),
        ...(strings === undefined ? [] : [relationship("strings", "sharedStrings", "sharedStrings.xml")])
      )
    },
    ...all.map(([, data], at) => ({ name: `xl/worksheets/sheet${at + 1}.xml`, content: sheetXml(data) })),
    ...(strings === undefined
      ? []
      : [{ name: "xl/sharedStrings.xml", content: `<sst xmlns="${main}">${strings}</sst>` }])
  ]
}

const escape = (text: string) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;")

/** Rows of cells from A1 on: text inline, numbers and booleans as they are, undefined for no cell. */
export const rowsXml = (
  ...rows: ReadonlyArray<ReadonlyArray<string | number | boolean | undefined>>
): string =>
  rows
    .map(
      (cells, row) =>
        `<row r="${row + 1}">${cells
          .map((cell, column) => {
            const at = `r="${String.fromCharCode(65 + column)}${row + 1}"`
            if (cell === undefined) return ""
            if (typeof cell === "string") return `<c ${at} t="inlineStr"><is><t>${escape(cell)}</t></is></c>`
            if (typeof cell === "boolean") return `<c ${at} t="b"><v>${cell ? 1 : 0}</v></c>`
            return `<c ${at}><v>${cell}</v></c>`
          })
          .join("")}</row>`
    )
    .join("")
