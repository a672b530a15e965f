/** The text of formulas that share one. */
import { columnOf, lastColumn, lastRow, lettersOf } from "./Reference.js"

/** Text in double quotes, sheet names in single ones, structured references and external books; these stay. */
const fixed = /"(?:[^"]|"")*"|'(?:[^']|'')*'|\[(?:[^[\]]|\[[^\]]*\])*\]/y
const word = /[\p{L}_\\][\p{L}\p{N}_.\\]*\(?/uy
const reference = /(\$?)([A-Za-z]{1,3})(\$?)([0-9]{1,7})(?![\p{L}\p{N}_.(])/uy
const columnPair = /(\$?)([A-Za-z]{1,3}):(\$?)([A-Za-z]{1,3})(?![\p{L}\p{N}_.($])/uy
const rowPair = /(\$?)([0-9]{1,7}):(\$?)([0-9]{1,7})(?![\p{L}\p{N}_.])/uy
const number = /[0-9.]+(?:[eE][+-]?[0-9]+)?/y

const shifted = (value: number, by: number, anchored: boolean, last: number): number | undefined => {
  if (anchored) return value
  const moved = value + by
  return moved >= 1 && moved <= last ? moved : undefined
}

/** Twice what Excel allows; a longer formula is left as it is. */
const longestFormula = 16_384

/** The formula as it reads when it is moved by rows and columns: relative references move along. */
export const moveFormula = (formula: string, rows: number, columns: number): string => {
  if ((rows === 0 && columns === 0) || formula.length > longestFormula) return formula
  const column = (anchor: string | undefined, letters: string | undefined) => {
    const moved = shifted(columnOf(letters ?? ""), columns, anchor === "$", lastColumn)
    return moved === undefined ? undefined : `${anchor ?? ""}${lettersOf(moved)}`
  }
  const row = (anchor: string | undefined, digits: string | undefined) => {
    const moved = shifted(Number(digits), rows, anchor === "$", lastRow)
    return moved === undefined ? undefined : `${anchor ?? ""}${moved}`
  }
  let moved = ""
  let at = 0
  const match = (pattern: RegExp) => {
    pattern.lastIndex = at
    const found = pattern.exec(formula)
    if (found !== null) at += found[0].length
    return found
  }
  const join = (parts: ReadonlyArray<string | undefined>, between: string) =>
    parts.includes(undefined) ? "#REF!" : parts.join(between)
  while (at < formula.length) {
    const kept = match(fixed)
    if (kept !== null) {
      moved += kept[0]
      continue
    }
    const pair = match(columnPair)
    if (pair !== null) {
      moved += join([column(pair[1], pair[2]), column(pair[3], pair[4])], ":")
      continue
    }
    const cell = match(reference)
    if (cell !== null) {
      moved += join([column(cell[1], cell[2]), row(cell[3], cell[4])], "")
      continue
    }
    const lines = match(rowPair)
    if (lines !== null) {
      moved += join([row(lines[1], lines[2]), row(lines[3], lines[4])], ":")
      continue
    }
    const other = match(word) ?? match(number)
    if (other !== null) {
      moved += other[0]
      continue
    }
    moved += formula[at] ?? ""
    at++
  }
  return moved
}
