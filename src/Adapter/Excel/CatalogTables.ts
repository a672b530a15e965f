/** The tables that describe a workbook: `xl_sheets` and its like for callers, two of `Describe.ts` for the catalog. */
import type { Book } from "./Book.js"
import { moveFormula } from "./Formula.js"
import type { Grid } from "./Grid.js"
import { type Inventory, namedTables } from "./Names.js"
import { addressOf, lastColumn, lastRow, rangeText } from "./Reference.js"
import type { ColumnType, Stored } from "./Value.js"
import type { Sheet } from "./WorkbookPart.js"

export interface CatalogContent {
  readonly columns: Grid["columns"]
  readonly rows: ReadonlyArray<ReadonlyArray<Stored>>
}

const columns = (types: Readonly<Record<string, ColumnType>>): Grid["columns"] =>
  Object.entries(types).map(([name, type]) => ({ name, type, letters: "", errors: 0, uncached: 0 }))

/** `xl_sheets` without the sizes, which take reading the sheets (see {@link sizeOf}). */
export const sheetsContent = ({ sheets }: Inventory): CatalogContent => ({
  columns: columns({
    name: "TEXT",
    hidden: "BOOLEAN",
    rows: "INTEGER",
    columns: "INTEGER",
    header_row: "INTEGER"
  }),
  rows: sheets.map((sheet) => [sheet.name, sheet.hidden ? 1n : 0n, null, null, null])
})

/** Sets what `sizeOf` tells of the sheet in a row of `xl_sheets`. */
export const setSize = 'UPDATE xl_sheets SET "rows" = ?, columns = ?, header_row = ? WHERE rowid = ?'

/** From which column of `xl_sheets` on a sheet must have been read. */
export const firstSizeColumn = 2

export const sizeOf = (grid: Grid): ReadonlyArray<bigint | null> => {
  const header = grid.headerRow === null ? null : BigInt(grid.headerRow)
  // A sheet without cells has the one column that a table must have.
  const width = grid.rowCount === 0 && header === null ? 0 : grid.columns.length
  return [BigInt(grid.rowCount), BigInt(width), header]
}

export const tablesContent = ({ tables }: Inventory): CatalogContent => ({
  columns: columns({ name: "TEXT", sheet: "TEXT", range: "TEXT" }),
  rows: tables.map(({ name, range, sheet }) => [name, sheet, rangeText(range)])
})

export const namesContent = ({ names }: Inventory): CatalogContent => ({
  columns: columns({ name: "TEXT", scope: "TEXT", refers_to: "TEXT" }),
  rows: names.map(({ name, refersTo, scope }) => [name, scope, refersTo])
})

export const formulaColumns: Grid["columns"] = columns({
  sheet: "TEXT",
  cell: "TEXT",
  formula: "TEXT",
  value: "ANY"
})

/** Hands out the rows of `xl_formulas` for one sheet. */
export const readFormulas = async (
  book: Book,
  sheet: Sheet,
  hand: (row: ReadonlyArray<Stored>) => void
): Promise<void> => {
  const masters = new Map<string, { text: string; row: number; column: number }>()
  await book.read(sheet, {
    left: 1,
    right: lastColumn,
    bottom: lastRow,
    formulas: true,
    row: (row) => {
      for (let at = 0; at < row.count; at++) {
        const formula = row.formulas[at]
        if (formula === undefined) continue
        const column = row.columns[at] ?? 0
        const { shared, type } = formula
        let text: string | null = formula.text === "" ? null : formula.text
        if (type === "shared" && shared !== undefined) {
          const master = masters.get(shared)
          if (text !== null) masters.set(shared, { text, row: row.number, column })
          else if (master !== undefined)
            text = moveFormula(master.text, row.number - master.row, column - master.column)
        }
        hand([sheet.name, addressOf(row.number, column), text, row.values[at] ?? null])
      }
    }
  })
}

export const objectsContent = ({ inventory, textsAreParsed }: Book): CatalogContent => ({
  columns: columns({ kind: "TEXT", name: "TEXT", range: "TEXT", hidden: "INTEGER" }),
  rows: namedTables(inventory).map(({ hidden, kind, name, range }) => [
    textsAreParsed ? "table" : kind,
    name,
    range,
    hidden ? 1n : 0n
  ])
})

/** The columns of these objects, by their names. */
export const columnsContent = (objects: Iterable<readonly [string, Grid]>): CatalogContent => ({
  columns: columns({
    object: "TEXT",
    position: "INTEGER",
    name: "TEXT",
    type: "TEXT",
    letter: "TEXT",
    header_row: "INTEGER",
    rows: "INTEGER"
  }),
  rows: [...objects].flatMap(([object, grid]) => {
    const header = grid.headerRow === null ? null : BigInt(grid.headerRow)
    return grid.columns.map(({ letters, name, type }, index) => [
      object,
      BigInt(index),
      name,
      type,
      letters,
      header,
      BigInt(grid.rowCount)
    ])
  })
})
