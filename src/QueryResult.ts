/** The answer of a query, and how it is made from an adapter's rows. */
import * as Schema from "effect/Schema"
import type { Format, RowSet } from "./Rows.js"

/** A cell that was cut at `maxCellBytes`: `row` counts from 0, `bytes` is the whole cell's size. */
export const TruncatedCell = Schema.Struct({
  row: Schema.Number,
  column: Schema.String,
  bytes: Schema.Number
})
export type TruncatedCell = typeof TruncatedCell.Type

const shared = {
  columns: Schema.Array(Schema.String),
  columnTypes: Schema.Array(Schema.NullOr(Schema.String)),
  rowCount: Schema.Number,
  durationMs: Schema.Number,
  truncated: Schema.Boolean,
  truncatedBy: Schema.optionalWith(Schema.Literal("max_rows", "max_bytes"), { exact: true }),
  truncatedCells: Schema.optionalWith(Schema.Array(TruncatedCell), { exact: true }),
  notes: Schema.optionalWith(Schema.Array(Schema.String), { exact: true })
}

/** `records`: a row is an object by column name; `columnar`: a row is an array in the order of `columns`. */
export const QueryResult = Schema.Struct({
  ...shared,
  rows: Schema.Array(
    Schema.Union(Schema.Array(Schema.Unknown), Schema.Record({ key: Schema.String, value: Schema.Unknown }))
  )
})
export type QueryResult = typeof QueryResult.Type

/** A record's keys are own keys whatever their names, `__proto__` among them. */
const toRecord = (columns: ReadonlyArray<string>, row: ReadonlyArray<unknown>): Record<string, unknown> =>
  Object.fromEntries(columns.map((column, index) => [column, row[index]]))

/**
 * The answer that an adapter's rows make in `format`, which is the one that the adapter was given, because the limit in
 * bytes is counted in it. `durationMs` is rounded to 0.1 ms.
 */
export const fromRowSet = (rowSet: RowSet, format: Format, durationMs: number): QueryResult => ({
  columns: rowSet.columns,
  columnTypes: rowSet.columnTypes,
  rows: format === "columnar" ? rowSet.rows : rowSet.rows.map((row) => toRecord(rowSet.columns, row)),
  rowCount: rowSet.rows.length,
  durationMs: Math.round(durationMs * 10) / 10,
  truncated: rowSet.truncatedBy !== null,
  ...(rowSet.truncatedBy === null ? {} : { truncatedBy: rowSet.truncatedBy }),
  ...(rowSet.truncatedCells.length === 0 ? {} : { truncatedCells: rowSet.truncatedCells }),
  ...(rowSet.notes.length === 0 ? {} : { notes: rowSet.notes })
})
