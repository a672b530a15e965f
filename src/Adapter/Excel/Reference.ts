/** Cell addresses: letters, ranges and their bounds. Rows and columns count from 1. */

export const lastColumn = 16_384
export const lastRow = 1_048_576

export interface Range {
  readonly top: number
  readonly left: number
  readonly bottom: number
  readonly right: number
}

/** 1 → `A`, 28 → `AB` */
export const lettersOf = (column: number): string => {
  let letters = ""
  for (let rest = column; rest > 0; rest = Math.floor((rest - 1) / 26))
    letters = String.fromCharCode(65 + ((rest - 1) % 26)) + letters
  return letters
}

/** `AB` → 28; a number past {@link lastColumn} for what no sheet has. */
export const columnOf = (letters: string): number => {
  let column = 0
  for (const letter of letters.toUpperCase()) column = Math.min(column * 26 + letter.charCodeAt(0) - 64, 1e6)
  return column
}

const cells = /^\$?([A-Za-z]{1,3})\$?([0-9]{1,7})(?::\$?([A-Za-z]{1,3})\$?([0-9]{1,7}))?$/
const columns = /^\$?([A-Za-z]{1,3}):\$?([A-Za-z]{1,3})$/
const rows = /^\$?([0-9]{1,7}):\$?([0-9]{1,7})$/

const ordered = (a: number, b: number): readonly [number, number] => (a <= b ? [a, b] : [b, a])

/** `B2:D9`, `B2`, `B:D`, `2:9`, each with or without `$`, corners in any order; undefined for anything else. */
export const parseRange = (text: string): Range | undefined => {
  const sides = (columnA: number, columnB: number, rowA: number, rowB: number): Range | undefined => {
    const [left, right] = ordered(columnA, columnB)
    const [top, bottom] = ordered(rowA, rowB)
    return left < 1 || right > lastColumn || top < 1 || bottom > lastRow
      ? undefined
      : { top, left, bottom, right }
  }
  const byCells = cells.exec(text)
  if (byCells !== null) {
    const [, a = "", b = "", c = a, d = b] = byCells
    return sides(columnOf(a), columnOf(c), Number(b), Number(d))
  }
  const byColumns = columns.exec(text)
  if (byColumns !== null) return sides(columnOf(byColumns[1] ?? ""), columnOf(byColumns[2] ?? ""), 1, lastRow)
  const byRows = rows.exec(text)
  if (byRows !== null) return sides(1, lastColumn, Number(byRows[1]), Number(byRows[2]))
  return undefined
}

export const addressOf = (row: number, column: number): string => `${lettersOf(column)}${row}`

export const rangeText = ({ bottom, left, right, top }: Range): string =>
  `${addressOf(top, left)}:${addressOf(bottom, right)}`
