/** What a table name in a statement means in a workbook. Pure. */
import { lastColumn, lastRow, parseRange, type Range, rangeText } from "./Reference.js"
import type { DefinedName, Sheet, Table } from "./WorkbookPart.js"

export interface Inventory {
  readonly sheets: ReadonlyArray<Sheet>
  readonly tables: ReadonlyArray<Table>
  readonly names: ReadonlyArray<DefinedName>
}

/** How the rows of a range become a table. */
export type Reading =
  /** The header is looked for. */
  | { readonly header: "find" }
  /** The first row is the header; blank names come from `names` or are letters. */
  | { readonly header: "first"; readonly names?: ReadonlyArray<string> }
  /** Every row is data, also an empty one inside the used area. */
  | { readonly header: "letters" }
  /** Every row is data; the names are known. */
  | { readonly header: "given"; readonly names: ReadonlyArray<string> }
  /** Every row is data, columns are letters; a range of one row has no header. */
  | { readonly header: "none" }

export interface Target {
  readonly sheet: Sheet
  readonly range: Range
  /** Whether all columns of the range are columns of the table, also unused ones. */
  readonly wholeRange: boolean
  readonly reading: Reading
}

export const catalogTables = ["xl_sheets", "xl_tables", "xl_names", "xl_formulas"] as const
export type CatalogTable = (typeof catalogTables)[number]

export type Resolution =
  | { readonly kind: "target"; readonly target: Target }
  | { readonly kind: "catalog"; readonly table: CatalogTable }
  /** The name exists, but is no table; the message says why. */
  | { readonly kind: "no_table"; readonly message: string }
  | { readonly kind: "unknown" }

const everything: Range = { top: 1, left: 1, bottom: lastRow, right: lastColumn }

const fold = (name: string) => name.normalize("NFC").toLowerCase()

/** An exact match wins over one that ignores case. */
const pick = <A extends { readonly name: string }>(all: ReadonlyArray<A>, name: string, exact: boolean) =>
  all.filter((each) => (exact ? each.name === name : fold(each.name) === fold(name)))

const sheetTarget = (sheet: Sheet): Resolution => ({
  kind: "target",
  target: { sheet, range: everything, wholeRange: false, reading: { header: "find" } }
})

const tableTarget = (table: Table, { sheets }: Inventory): Resolution => {
  const sheet = sheets.find(({ name }) => name === table.sheet)
  if (sheet === undefined) return { kind: "unknown" }
  const { columns, headerRows, range, totalsRows } = table
  const reading: Reading =
    headerRows > 0 ? { header: "first", names: columns } : { header: "given", names: columns }
  return {
    kind: "target",
    target: {
      sheet,
      range: {
        ...range,
        top: range.top + Math.max(0, headerRows - 1),
        bottom: Math.max(range.top, range.bottom - totalsRows)
      },
      wholeRange: true,
      reading
    }
  }
}

/** `'Other Sheet'!$A$1:$B$2` → its sheet's name and its range. */
const plainReference = /^(?:'((?:[^']|'')+)'|([^'!,()[\]"]+))!([$A-Za-z0-9:]+)$/

const shortened = (text: string) => (text.length > 200 ? `${text.slice(0, 200)}…` : text)

const nameTarget = (name: DefinedName, { sheets }: Inventory): Resolution => {
  const found = plainReference.exec(name.refersTo.replace(/^=/, ""))
  const sheetName = found?.[1]?.replaceAll("''", "'") ?? found?.[2]
  const range = found?.[3] === undefined ? undefined : parseRange(found[3])
  const sheet = sheets.find((each) => each.name === sheetName) ?? pick(sheets, sheetName ?? "", false)[0]
  if (sheet === undefined || range === undefined)
    return {
      kind: "no_table",
      message: `The defined name "${name.name}" is no single range of this workbook: it stands for ${shortened(name.refersTo)}.`
    }
  return {
    kind: "target",
    target: {
      sheet,
      range,
      wholeRange: false,
      reading: { header: range.top === range.bottom ? "none" : "find" }
    }
  }
}

const byName = (inventory: Inventory, name: string, exact: boolean): Resolution | undefined => {
  const [sheet] = pick(inventory.sheets, name, exact)
  if (sheet !== undefined) return sheetTarget(sheet)
  const catalog = catalogTables.find((each) => (exact ? each === name : each === fold(name)))
  if (catalog !== undefined) return { kind: "catalog", table: catalog }
  const [table] = pick(inventory.tables, name, exact)
  if (table !== undefined) return tableTarget(table, inventory)
  const named = pick(inventory.names, name, exact)
  const global = named.find(({ scope }) => scope === null)
  if (global !== undefined) return nameTarget(global, inventory)
  if (named.length > 1)
    return {
      kind: "no_table",
      message: `The name "${name}" is defined on several sheets: ${named.map(({ scope }) => `[${scope}!${name}]`).join(", ")}.`
    }
  return named[0] === undefined ? undefined : nameTarget(named[0], inventory)
}

const unquoted = (text: string) =>
  /^'(?:[^']|'')+'$/.test(text) ? text.slice(1, -1).replaceAll("''", "'") : text

/** `Sheet$A4:D100` and `Sheet!A1:D20`; also `Sheet$` for the sheet, and `Sheet!name` for a name of its own. */
const bySheetPart = (inventory: Inventory, name: string): Resolution | undefined => {
  const marks = [...name.matchAll(/[!$]/g)].map(({ index }) => index)
  const found = (at: number): Resolution | undefined => {
    const rest = name.slice(at + 1)
    const written = name.slice(0, at)
    const sheet =
      pick(inventory.sheets, written, true)[0] ??
      pick(inventory.sheets, unquoted(written), true)[0] ??
      pick(inventory.sheets, unquoted(written), false)[0]
    if (sheet === undefined) return undefined
    if (rest === "") return name[at] === "$" ? sheetTarget(sheet) : undefined
    const range = parseRange(rest)
    if (range !== undefined)
      return {
        kind: "target",
        target: {
          sheet,
          range,
          wholeRange: true,
          reading: name[at] === "$" ? { header: "first" } : { header: "letters" }
        }
      }
    const local = inventory.names.filter(({ scope }) => scope === sheet.name)
    const own = pick(local, rest, true)[0] ?? pick(local, rest, false)[0]
    if (own !== undefined) return nameTarget(own, inventory)
    return /^\$?[A-Za-z]{1,4}\$?\d*(:|$)|^\d+:/.test(rest)
      ? { kind: "no_table", message: `"${rest}" is no range that a sheet can have.` }
      : undefined
  }
  // The first mark that leaves a sheet's name before it: both marks may stand in such a name, and $ in a range.
  for (const at of marks) {
    const resolution = found(at)
    if (resolution !== undefined) return resolution
  }
  return undefined
}

/** What `name` means: a sheet before a table before a defined name, each first as written, then ignoring case. */
export const resolve = (inventory: Inventory, name: string): Resolution =>
  byName(inventory, name, true) ??
  byName(inventory, name, false) ??
  bySheetPart(inventory, name) ?? { kind: "unknown" }

/** A name that rows can be read from. */
export interface NamedTable {
  readonly kind: "sheet" | "table" | "name"
  readonly name: string
  /** Where it is, if it is not a whole sheet. */
  readonly range: string | null
  readonly hidden: boolean
}

/** Every name that means a table, as a statement may write it between brackets; what a name hides is left out. */
export const namedTables = (inventory: Inventory): ReadonlyArray<NamedTable> => {
  const named = new Map<string, NamedTable>()
  const add = (each: NamedTable) => {
    if (!named.has(each.name)) named.set(each.name, each)
  }
  for (const { hidden, name } of inventory.sheets) add({ kind: "sheet", name, range: null, hidden })
  for (const { name, range, sheet } of inventory.tables)
    add({ kind: "table", name, range: `${sheet}!${rangeText(range)}`, hidden: false })
  for (const { name, refersTo, scope } of inventory.names) {
    if (name.startsWith("_xlnm")) continue
    const written = [name, `${scope}!${name}`].find((each) => resolve(inventory, each).kind === "target")
    if (written !== undefined)
      add({ kind: "name", name: written, range: refersTo.replace(/^=/, ""), hidden: false })
  }
  return [...named.values()]
}
