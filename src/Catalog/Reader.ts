/** What each engine's catalog is read into, and what `Catalog.ts` asks of each engine. */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"
import type * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import type { Column, SchemaObject } from "../SchemaResult.js"

export type { Column }
export type Description = Partial<Omit<SchemaObject, "name" | "kind" | "comment" | "columns">>

/** The columns of an object, and what was learnt on the way. */
export type Columns = Pick<SchemaObject, "columns"> & Description

/** How much is told of an object. */
export type Detail = "names" | "columns" | "full"

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

/** One engine's catalog. `objects` takes at most two statements (a second one where the first found nothing), `columns` at most two, `describe` at most one. */
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
