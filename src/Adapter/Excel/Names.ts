/** What a table name in a statement means in a workbook. Pure. */
import { lastColumn, parseRange, type Range, rangeText } from "./Reference.js"
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

/** A whole sheet; delimited text can have more rows than a sheet. */
export const everything: Range = { top: 1, left: 1, bottom: Number.MAX_SAFE_INTEGER, right: lastColumn }

const fold = (name: string) => name.normalize("NFC").toLowerCase()

/** What a workbook names, by name: as written, and with case ignored. A workbook can have many thousand names. */
interface Index {
  readonly sheets: Finder<Sheet>
  readonly tables: Finder<Table>
  readonly names: Finder<DefinedName>
}

/** All things of a name, in the order of the file. */
type Finder<A> = (name: string, exact: boolean) => ReadonlyArray<A>

const finder = <A extends { readonly name: string }>(all: ReadonlyArray<A>): Finder<A> => {
  const grouped = (keyOf: (name: string) => string) => {
    const groups = new Map<string, Array<A>>()
    for (const each of all) {
      const key = keyOf(each.name)
      const group = groups.get(key)
      if (group === undefined) groups.set(key, [each])
      else group.push(each)
    }
    return groups
  }
  const exactly = grouped((name) => name)
  const folded = grouped(fold)
  return (name, exact) => (exact ? exactly.get(name) : folded.get(fold(name))) ?? []
}

const indexes = new WeakMap<Inventory, Index>()

const indexOf = (inventory: Inventory): Index => {
  const known = indexes.get(inventory)
  if (known !== undefined) return known
  const index: Index = {
    sheets: finder(inventory.sheets),
    tables: finder(inventory.tables),
    names: finder(inventory.names)
  }
  indexes.set(inventory, index)
  return index
}

const sheetTarget = (sheet: Sheet): Resolution => ({
  kind: "target",
  target: { sheet, range: everything, wholeRange: false, reading: { header: "find" } }
})

const tableTarget = (table: Table, { sheets }: Index): Resolution => {
  const [sheet] = sheets(table.sheet, true)
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

const nameTarget = (name: DefinedName, { sheets }: Index): Resolution => {
  const found = plainReference.exec(name.refersTo.replace(/^=/, ""))
  const sheetName = found?.[1]?.replaceAll("''", "'") ?? found?.[2]
  const range = found?.[3] === undefined ? undefined : parseRange(found[3])
  const sheet = sheets(sheetName ?? "", true)[0] ?? sheets(sheetName ?? "", false)[0]
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

const byName = (index: Index, name: string, exact: boolean): Resolution | undefined => {
  const [sheet] = index.sheets(name, exact)
  if (sheet !== undefined) return sheetTarget(sheet)
  const catalog = catalogTables.find((each) => (exact ? each === name : each === fold(name)))
  if (catalog !== undefined) return { kind: "catalog", table: catalog }
  const [table] = index.tables(name, exact)
  if (table !== undefined) return tableTarget(table, index)
  const named = index.names(name, exact)
  const global = named.find(({ scope }) => scope === null)
  if (global !== undefined) return nameTarget(global, index)
  if (named.length > 1)
    return {
      kind: "no_table",
      message: `The name "${name}" is defined on several sheets: ${named.map(({ scope }) => `[${scope}!${name}]`).join(", ")}.`
    }
  return named[0] === undefined ? undefined : nameTarget(named[0], index)
}

const unquoted = (text: string) =>
  /^'(?:[^']|'')+'$/.test(text) ? text.slice(1, -1).replaceAll("''", "'") : text

/** Longer than a sheet's name and a range can be; each `$` and `!` of a name is tried as the mark between them. */
const longestSheetPart = 1000

/** `Sheet$A4:D100` and `Sheet!A1:D20`; also `Sheet$` for the sheet, and `Sheet!name` for a name of its own. */
const bySheetPart = (index: Index, name: string): Resolution | undefined => {
  if (name.length > longestSheetPart) return undefined
  const marks = [...name.matchAll(/[!$]/g)].map((mark) => mark.index)
  const found = (at: number): Resolution | undefined => {
    const rest = name.slice(at + 1)
    const written = name.slice(0, at)
    const sheet =
      index.sheets(written, true)[0] ??
      index.sheets(unquoted(written), true)[0] ??
      index.sheets(unquoted(written), false)[0]
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
    const own = [...index.names(rest, true), ...index.names(rest, false)].find(
      ({ scope }) => scope === sheet.name
    )
    if (own !== undefined) return nameTarget(own, index)
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
export const resolve = (inventory: Inventory, name: string): Resolution => {
  const index = indexOf(inventory)
  return (
    byName(index, name, true) ?? byName(index, name, false) ?? bySheetPart(index, name) ?? { kind: "unknown" }
  )
}

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
