/** Where a sheet's header stands, and what its columns are called. Pure. */
import { freeNames } from "../../Rows.js"
import { lettersOf } from "./Reference.js"
import { Kind, type Stored } from "./Value.js"

/** The cells of one row that hold something; columns count from 1, in any order. */
export interface Row {
  readonly number: number
  readonly columns: ReadonlyArray<number>
  readonly values: ReadonlyArray<Stored>
  readonly kinds: ReadonlyArray<number>
}

/** How many non-empty rows are looked at. */
export const headerDepth = 25

const filledCells = ({ kinds, values }: Row): number => {
  let filled = 0
  for (let i = 0; i < values.length; i++) if (isFilled(values[i], kinds[i])) filled++
  return filled
}

/** Blank text, errors and formulas without a value fill no header. */
const isFilled = (value: Stored | undefined, kind: number | undefined) =>
  kind === Kind.text
    ? typeof value === "string" && value.trim() !== ""
    : value !== null && value !== undefined

/**
 * The index of the header among the first non-empty rows, or -1: the first row that fills at least three quarters of
 * the widest row's cells, more than half of them with text. Dates are no text here.
 */
export const findHeader = (rows: ReadonlyArray<Row>): number => {
  const candidates = rows.slice(0, headerDepth)
  const widest = candidates.reduce((most, row) => Math.max(most, filledCells(row)), 0)
  return candidates.findIndex((row) => {
    const filled = filledCells(row)
    const texts = row.kinds.filter((kind, i) => kind === Kind.text && isFilled(row.values[i], kind)).length
    return filled > 0 && filled * 4 >= widest * 3 && texts * 2 > filled
  })
}

/** A header cell's value as a name; undefined where it is blank. */
export const headerText = (value: Stored, kind: number): string | undefined => {
  if (value === null) return undefined
  const text = kind === Kind.boolean ? (value === 1n ? "TRUE" : "FALSE") : String(value)
  // SQL ends at a NUL.
  const trimmed = text.trim().replaceAll("\u0000", "\ufffd")
  return trimmed === "" ? undefined : trimmed
}

/** Case is ignored as SQLite does, and beyond ASCII too. */
const fold = (name: string) => name.toLowerCase()

/**
 * Unique names for the columns from `left` on. A name that one column alone has stays with it; a repeated one gets the
 * next free `_N`; a blank one is the column's letters.
 */
export const columnNames = (headers: ReadonlyArray<string | undefined>, left: number): Array<string> => {
  const taken = new Set(headers.flatMap((header) => (header === undefined ? [] : [fold(header)])))
  const seen = new Set<string>()
  const free = freeNames(taken, fold)
  return headers.map((header, index) => {
    if (header === undefined) {
      const letters = lettersOf(left + index)
      if (taken.has(fold(letters))) return free(letters)
      taken.add(fold(letters))
      return letters
    }
    if (seen.has(fold(header))) return free(header)
    seen.add(fold(header))
    return header
  })
}
