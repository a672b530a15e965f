/** What an answer must say beside its rows: cells that answer null although they are not empty, and cells left out. */
import { type Grid, type GridColumn, maxColumns } from "./Grid.js"
import type { Reads } from "./Statement.js"

const total = (columns: ReadonlyArray<GridColumn>, count: (column: GridColumn) => number) =>
  columns.reduce((sum, column) => sum + count(column), 0)

/** `gridOf`: the grid of a table by the name that `reads` has for it. */
export const notesOf = (
  { schema, tables }: Reads,
  gridOf: (name: string) => Grid | undefined
): ReadonlyArray<string> => {
  const notes: Array<string> = []
  for (const [name, columns] of tables) {
    const grid = gridOf(name)
    if (grid === undefined) continue
    const read = [...columns].flatMap((index) => grid.columns[index] ?? [])
    const errors = total(read, (column) => column.errors)
    const uncached = total(read, (column) => column.uncached)
    if (errors > 0)
      notes.push(
        errors === 1
          ? `[${name}]: 1 cell holds an error value and answers null.`
          : `[${name}]: ${errors} cells hold an error value and answer null.`
      )
    if (uncached > 0)
      notes.push(
        `[${name}]: ${uncached === 1 ? "1 formula has" : `${uncached} formulas have`} no cached value and ${uncached === 1 ? "answers" : "answer"} null; saving the file in a spreadsheet program fills it in.`
      )
    if (grid.leftOut > 0)
      notes.push(
        `[${name}]: ${grid.leftOut === 1 ? "1 cell is" : `${grid.leftOut} cells are`} left out, beyond the ${maxColumns} columns that a table can have; a range such as [Sheet!XFA1:XFD9] reaches them.`
      )
  }
  if (schema)
    notes.push(
      "sqlite_schema lists only the tables that were read so far; xl_sheets, xl_tables and xl_names list all."
    )
  return notes
}
