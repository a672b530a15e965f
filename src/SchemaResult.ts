/** The answer of the tool `schema`: what a source has, or which sources there are. Shape and Schema. */
import * as Schema from "effect/Schema"
import { optional } from "./OptionalField.js"

const Strings = Schema.Array(Schema.String)

/** A column. What is absent does not apply; names are as a statement writes them, quoted where they must be. */
export const Column = Schema.Struct({
  name: Schema.String,
  /** The engine's own type with its length or precision; absent where the engine has none. */
  type: optional(Schema.String),
  /** Absent: null is allowed. */
  nullable: optional(Schema.Literal(false)),
  /** The expression of its default. */
  default: optional(Schema.String),
  /** The expression that it is computed from. */
  generated: optional(Schema.String),
  /** `always` or `by default`; the engine gives the value. */
  identity: optional(Schema.String),
  /** The type beneath a domain or an alias type. */
  base: optional(Schema.String),
  /** The values of an enumeration, in its order. */
  values: optional(Strings),
  /** The conditions of its domain. */
  checks: optional(Strings),
  comment: optional(Schema.String),
  /** A workbook's column letter. */
  letter: optional(Schema.String)
})
export type Column = typeof Column.Type

export const ForeignKey = Schema.Struct({
  columns: Strings,
  /** As SQL writes it: `customers(id)`. */
  references: Schema.String
})

export const Index = Schema.Struct({
  name: Schema.String,
  /** Columns or expressions in order, with `desc` where an index descends. */
  columns: Strings,
  unique: optional(Schema.Literal(true)),
  /** The condition of a partial index. */
  where: optional(Schema.String),
  /** Columns that are only stored in it. */
  include: optional(Strings),
  /** The access method, where it is not the usual one. */
  method: optional(Schema.String)
})

/** What is known of an object beyond its name and columns. */
const description = {
  /** An estimate unless the object is small. */
  rows: optional(Schema.Number),
  columns: Schema.Array(Column),
  primaryKey: optional(Strings),
  foreignKeys: optional(Schema.Array(ForeignKey)),
  /** The conditions of its check and exclusion constraints. */
  checks: optional(Strings),
  unique: optional(Schema.Array(Strings)),
  indexes: optional(Schema.Array(Index)),
  /** Foreign keys of other tables that point here: `orders(customer_id)`. */
  referencedBy: optional(Strings),
  partitions: optional(Schema.Number),
  partitionKey: optional(Schema.String),
  partitionOf: optional(Schema.String),
  inherits: optional(Strings),
  /** What a synonym stands for. */
  target: optional(Schema.String),
  /** A view's query, or SQLite's own text of a table. */
  definition: optional(Schema.String),
  /** Workbooks: the sheet's row in which the header was found. */
  headerRow: optional(Schema.Number),
  /** Workbooks: the sheet or range behind a table or a defined name. */
  range: optional(Schema.String),
  hidden: optional(Schema.Literal(true)),
  notes: optional(Strings)
}

/** A table, view or whatever else rows can be read from. */
export const SchemaObject = Schema.Struct({
  name: Schema.String,
  /** `table`, `view`, `materialized_view`, `foreign_table`, `virtual_table`, `synonym`, `sheet`, `name`, … */
  kind: Schema.String,
  comment: optional(Schema.String),
  ...description
})
export type SchemaObject = typeof SchemaObject.Type

/** The answer about a source: `names` at that level of detail, else `objects`. */
export const SchemaResult = Schema.Struct({
  /** By kind, as a statement writes them. */
  names: optional(Schema.Record({ key: Schema.String, value: Schema.Array(Schema.String) })),
  /** Comments by name, where there are some and room for them. */
  comments: optional(Schema.Record({ key: Schema.String, value: Schema.String })),
  objects: optional(Schema.Array(SchemaObject)),
  /** How many objects match; given where they are not all here. */
  total: optional(Schema.Number),
  truncated: Schema.Boolean,
  notes: optional(Strings)
})
export type SchemaResult = typeof SchemaResult.Type

/** The sources: the answer where none is named and there are several. */
export const SourceList = Schema.Struct({
  sources: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      /** `sqlite`, `postgres`, `mssql`, `excel`, `csv`, or the name in an application's Dialect. */
      engine: Schema.NonEmptyString,
      /** What the configuration says of it. */
      description: optional(Schema.String)
    })
  ),
  truncated: Schema.Literal(false),
  notes: optional(Strings)
})
export type SourceList = typeof SourceList.Type

/** Whatever the tool answers. */
export const SchemaAnswer = Schema.Union(SourceList, SchemaResult)
export type SchemaAnswer = typeof SchemaAnswer.Type
