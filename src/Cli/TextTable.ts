/** Rows as a table for a terminal. */
import stringWidth from "string-width"

const shown = (value: unknown): string => {
  if (value === null || value === undefined) return "–"
  const text = typeof value === "object" ? JSON.stringify(value) : String(value)
  return text.replace(/\s+/g, " ")
}

/** Column names over lines of cells; numbers stand at the right. */
export const textTable = (
  columns: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<unknown>>,
  indent = "  "
): string => {
  const cells = rows.map((row) => columns.map((_, index) => shown(row[index])))
  const widths = columns.map((column, index) =>
    Math.max(stringWidth(column), ...cells.map((row) => stringWidth(row[index] ?? "")))
  )
  const right = columns.map(
    (_, index) => rows.length > 0 && rows.every((row) => typeof row[index] === "number")
  )
  const line = (values: ReadonlyArray<string>) =>
    indent +
    values
      .map((value, index) => {
        const space = " ".repeat(Math.max(0, (widths[index] ?? 0) - stringWidth(value)))
        return right[index] ? space + value : value + space
      })
      .join("  ")
      .trimEnd()
  return [line(columns), line(widths.map((width) => "─".repeat(width))), ...cells.map(line)].join("\n")
}
