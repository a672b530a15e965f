/**
 * How an engine's catalog is read: what the tool `schema` and the hints ask of it, and what they get. Our engines'
 * readers stand in `Catalog/`; an application brings one in the `catalog` of its Dialect.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import type * as Effect from "effect/Effect"
import type { ParseError } from "effect/ParseResult"
import type { AdapterFailure } from "./QueryError.js"
import type { Column, SchemaObject } from "./SchemaResult.js"

export type { Column }

/** What is told of an object beside its name, kind, comment and columns. What does not apply is absent. */
export type Description = Partial<Omit<SchemaObject, "name" | "kind" | "comment" | "columns">>

/** The columns of an object, and what was learnt on the way. */
export type Columns = Pick<SchemaObject, "columns"> & Description

/** How much is told of an object. */
export type Detail = "names" | "columns" | "full"

/** An object as the catalog lists it. */
export interface ObjectFact {
  /** The engine's own handle for further questions; the reader's own business. */
  readonly id: string
  /** As a statement writes it: quoted where it must be, qualified where the bare name means another one. */
  readonly name: string
  /** Its own name without quotes and schema. */
  readonly bare: string
  /** `schema.name` without quotes. */
  readonly qualified: string
  /** `table`, `view` or whatever else the engine has. */
  readonly kind: string
  readonly comment: string | null
}

export interface Listing {
  /** In the order in which they are shown. */
  readonly objects: ReadonlyArray<ObjectFact>
  /** How many there are in all, those beyond `limit` as well. */
  readonly total: number
}

/** Which objects are wanted: all, or those whose bare or qualified name is like one of `likes`. */
export interface Search {
  /** Patterns of SQL's LIKE with `\` as its escape; case does not matter. Empty: all. */
  readonly likes: ReadonlyArray<string>
  /** Whether one object is asked for by its name; then partitions and the like are found, too. */
  readonly exact: boolean
  /** Objects at most. */
  readonly limit: number
}

/**
 * A look into the catalog. A `SqlError` of the adapter's client has the adapter's failure as its cause, and becomes it;
 * any other one, and rows that do not decode, are defects.
 */
export type Read<A> = Effect.Effect<A, AdapterFailure | SqlError | ParseError>

/**
 * One engine's catalog, read over the adapter's `client`. Whatever the number of objects, `objects` takes at most two
 * statements (a second one where the first found nothing), `columns` at most two and `describe` at most one.
 */
export interface Reader {
  /** What rows can be read from, as far as the login may. */
  readonly objects: (sql: SqlClient, search: Search) => Read<Listing>
  /** The columns by the objects' ids; one that is missing is unknown to the engine. */
  readonly columns: (sql: SqlClient, objects: ReadonlyArray<ObjectFact>) => Read<ReadonlyMap<string, Columns>>
  /** Keys, indexes, definitions and the like by the objects' ids. Absent: nothing more is known. */
  readonly describe?:
    | ((
        sql: SqlClient,
        objects: ReadonlyArray<ObjectFact>,
        detail: Exclude<Detail, "names">
      ) => Read<ReadonlyMap<string, Description>>)
    | undefined
  /** What else can be read here, told beside a list of all names. */
  readonly note?: string | undefined
}
