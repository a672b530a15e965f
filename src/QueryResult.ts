/** The answer of a query, and the builder that keeps it within its limits while rows are read. */
import * as Schema from "effect/Schema"

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
