/** What each engine's catalog is read into, and what `Catalog.ts` asks of each engine. */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"
import type * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })
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
export type Description = Partial<Omit<SchemaObject, "name" | "kind" | "comment" | "columns">>

/** The columns of an object, and what was learnt on the way. */
export type Columns = Pick<SchemaObject, "columns"> & Description

/** How much is told of an object. */
export const Detail = Schema.Literal("names", "columns", "full")
export type Detail = typeof Detail.Type

/** An object as the catalog lists it. */
export interface ObjectFact {
  /** The engine's own handle for further questions. */
  readonly id: string
  /** As a statement writes it: quoted where it must be, qualified where the bare name means another one. */
  readonly name: string
  readonly bare: string
  /** `schema.name` without quotes. */
  readonly qualified: string
  readonly kind: string
  readonly comment: string | null
}

export interface Listing {
  readonly objects: ReadonlyArray<ObjectFact>
  /** How many there are in all. */
  readonly total: number
}

/** Which objects are wanted: all, or those whose bare or qualified name is like one of `likes`. */
export interface Search {
  /** Patterns of SQL's LIKE with `\` as its escape; case does not matter. Empty: all. */
  readonly likes: ReadonlyArray<string>
  /** Whether one object is asked for by its name; then partitions and the like are found, too. */
  readonly exact: boolean
  readonly limit: number
}

export type Read<A> = Effect.Effect<A, SqlError | ParseResult.ParseError>

/** One engine's catalog. `objects` takes one statement, `columns` at most two, `describe` at most one. */
export interface Reader {
  readonly objects: (sql: SqlClient, search: Search) => Read<Listing>
  /** By the objects' ids; one that is missing is unknown to the engine. */
  readonly columns: (sql: SqlClient, objects: ReadonlyArray<ObjectFact>) => Read<ReadonlyMap<string, Columns>>
  readonly describe: (
    sql: SqlClient,
    objects: ReadonlyArray<ObjectFact>,
    detail: Exclude<Detail, "names">
  ) => Read<ReadonlyMap<string, Description>>
  /** What else can be read here, told beside a list of all names. */
  readonly note?: string
}

/** The rows of a statement, decoded. */
export const rowsOf =
  <A, I>(row: Schema.Schema<A, I>) =>
  <E>(statement: Effect.Effect<ReadonlyArray<unknown>, E>) =>
    Effect.flatMap(statement, Schema.decodeUnknown(Schema.Array(row)))

type Present<T> = { [K in keyof T]?: NonNullable<T[K]> }

const isEmpty = (value: unknown) =>
  value === null || value === undefined || value === "" || (Array.isArray(value) && value.length === 0)

/** The fields that say something. */
export const present = <T extends object>(fields: T): Present<T> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => !isEmpty(value))) as Present<T>

export const groupBy = <A>(all: Iterable<A>, key: (each: A) => string): Map<string, Array<A>> => {
  const groups = new Map<string, Array<A>>()
  for (const each of all) {
    const group = groups.get(key(each))
    if (group === undefined) groups.set(key(each), [each])
    else group.push(each)
  }
  return groups
}

/** Long texts of the catalog are cut here: a model needs to recognise them, not to run them. */
export const clip = (text: string | null, most: number): string | null =>
  text === null || text.length <= most ? text : `${text.slice(0, most)}…`

/** Lengths at which texts are cut. */
export const longest = { comment: 300, default: 200, expression: 500, definition: 4000 } as const

/** The condition inside `CHECK (…)`. */
export const conditionOf = (text: string): string => {
  const match = /^\s*CHECK\s*\(([\s\S]*)\)\s*(?:NOT VALID|NO INHERIT|NOT ENFORCED|\s)*$/i.exec(text)
  return stripParentheses(match?.[1] ?? text)
}

/** Parentheses that enclose the whole text say nothing. */
export const stripParentheses = (text: string): string => {
  const trimmed = text.trim()
  if (!trimmed.startsWith("(") || !trimmed.endsWith(")")) return trimmed
  let depth = 0
  let quote: string | undefined
  const characters = [...trimmed]
  for (const [at, character] of characters.entries()) {
    if (quote !== undefined) {
      // A doubled quote ends a quotation and begins the next.
      if (character === quote) quote = undefined
    } else if (character === "'" || character === '"') quote = character
    else if (character === "(") depth++
    else if (character === ")" && --depth === 0 && at < characters.length - 1) return trimmed
  }
  return stripParentheses(trimmed.slice(1, -1))
}
