/**
 * What a source has: its tables and whatever else rows can be read from, in a form that is short enough for a model.
 * At most four statements a call, whatever the number of objects; each engine's own are in `Catalog/`.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { AdapterService } from "./Adapter.js"
import { isPattern, searchOf, spelt } from "./Catalog/Name.js"
import { clip, groupBy } from "./Catalog/Reader.js"
import type { Description, Detail, ObjectFact, Read, Reader } from "./CatalogReader.js"
import { closest } from "./Closest.js"
import type { Dialect } from "./Dialect.js"
import { dialectOf } from "./Engines.js"
import { AdapterFailure, QueryFailed } from "./QueryError.js"
import type { SchemaObject, SchemaResult } from "./SchemaResult.js"

export type { Detail }

export interface SchemaRequest {
  /** An exact name, bare or qualified, quoted or not; or a pattern with `*`. Absent: everything. */
  readonly name?: string | undefined
  /** By default `columns` for an exact name, else `names`. */
  readonly detail?: Detail | undefined
  /** Most objects in the answer. */
  readonly limit?: number | undefined
  /** Most bytes of the answer as JSON, nearly. */
  readonly maxBytes: number
}

/** Most objects where the caller sets no limit. */
const defaultLimit: Record<Detail, number> = { names: 5000, columns: 100, full: 50 }

/** Comments stand beside names only while the whole stays within this many bytes. */
const namesWithComments = 32_000

/** A described object takes at least so many bytes; more objects than fit need not be described. */
const leastObjectBytes = 50

/** So many names can be told in a hint. */
const few = 15

/** Names among which the closest is looked for. */
const closestAmong = 5000

/** Of an engine whose Dialect has no reader. */
export const unreadable = ({ language }: Dialect): QueryFailed =>
  new QueryFailed({
    reason: "engine_error",
    message: "This source does not tell its schema.",
    hint: `Read the engine's own catalog with query, in ${language}.`
  })

const isAdapterFailure = Schema.is(AdapterFailure)

/** The adapter's failure is the cause of its client's; rows that do not decode are a fault of the reader. */
const toFailure = (error: Effect.Effect.Error<Read<unknown>>): Effect.Effect<never, AdapterFailure> => {
  switch (error._tag) {
    case "SqlError":
      return isAdapterFailure(error.cause) ? Effect.fail(error.cause) : Effect.die(error)
    case "ParseError":
      return Effect.die(error)
    default:
      return Effect.fail(error)
  }
}

const withClient = <A>(
  adapter: AdapterService,
  use: (sql: SqlClient, reader: Reader) => Read<A>
): Effect.Effect<A, AdapterFailure> => {
  const dialect = dialectOf(adapter.engine)
  if (dialect.catalog === undefined) return Effect.fail(unreadable(dialect))
  return Effect.scoped(
    Effect.flatMap(Effect.all([adapter.client, dialect.catalog]), ([sql, reader]) =>
      Effect.catchAll(use(sql, reader), toFailure)
    )
  )
}

/** No engine has a longer name, quoted and qualified. */
const longestAsked = 2000

/** Few names are longer; comparing a longer one with all others would only take time. */
const longestName = 200

/** Names that can be written, those close to `name` first; with the bare name compared as well. */
export const closestNames = (name: string, facts: ReadonlyArray<ObjectFact>): ReadonlyArray<string> => {
  if (name.length > longestName) return []
  const byForm = new Map<string, ObjectFact>()
  for (const fact of [...facts].reverse()) {
    byForm.set(fact.bare, fact)
    byForm.set(fact.qualified, fact)
  }
  const near = closest(name, byForm.keys(), 6).flatMap((form) => byForm.get(form)?.name ?? [])
  return [...new Set(near)].slice(0, 3)
}

/** All names where they are few, else how to see them. */
export const fewNames = (all: ReadonlyArray<ObjectFact>): string =>
  all.length === 0
    ? "This source has no tables or views that can be read here."
    : all.length <= few
      ? `The names are ${all.map(({ name }) => name).join(", ")}.`
      : "Call schema without name to see all names."

const shown = (name = "") => clip(name, longestName) ?? ""

const nothingHas = (name: string, all: ReadonlyArray<ObjectFact>): string => {
  const near = closestNames(name.replaceAll("*", ""), all)
  return near.length > 0 ? `Closest names: ${near.join(", ")}.` : fewNames(all)
}

const bytesOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value)) + 1

/** As many from the beginning as fit. */
const within = <A>(all: ReadonlyArray<A>, maxBytes: number): ReadonlyArray<A> => {
  let left = maxBytes
  const end = all.findIndex((each) => {
    left -= bytesOf(each)
    return left < 0
  })
  return end < 0 ? all : all.slice(0, end)
}

const cutNotice = (shown: number, total: number, more: string) => ({
  total,
  truncated: true,
  notes: [`${shown} of ${total} shown. ${more}`]
})

const narrower = 'Narrow it with a pattern in name, such as "order*".'

const namesResult = (facts: ReadonlyArray<ObjectFact>, total: number, maxBytes: number): SchemaResult => {
  const shown = within(
    facts.map(({ name }) => name),
    maxBytes
  ).length
  const kinds = groupBy(facts.slice(0, shown), ({ kind }) => kind)
  const names = Object.fromEntries([...kinds].map(([kind, own]) => [kind, own.map(({ name }) => name)]))
  const comments = Object.fromEntries(
    facts.slice(0, shown).flatMap(({ comment, name }) => (comment ? [[name, comment.slice(0, 100)]] : []))
  )
  const fits = bytesOf(names) + bytesOf(comments) <= Math.min(namesWithComments, maxBytes)
  return {
    names,
    ...(fits && Object.keys(comments).length > 0 ? { comments } : {}),
    ...(shown < total ? cutNotice(shown, total, narrower) : { truncated: false })
  }
}

const noted = (result: SchemaResult, notes: ReadonlyArray<string>): SchemaResult =>
  notes.length === 0 ? result : { ...result, notes: [...(result.notes ?? []), ...notes] }

/** One object that is too large by itself keeps the columns that fit. */
const shortened = (object: SchemaObject, maxBytes: number): SchemaObject => {
  const { definition: _, ...rest } = object
  const columns = within(rest.columns, Math.max(0, maxBytes - bytesOf({ ...rest, columns: [] })))
  return {
    ...rest,
    columns,
    notes: [...(rest.notes ?? []), `${columns.length} of ${rest.columns.length} columns shown.`]
  }
}

const objectsResult = (
  objects: ReadonlyArray<SchemaObject>,
  total: number,
  maxBytes: number
): SchemaResult => {
  const [first] = objects
  if (first === undefined) return { objects, truncated: false }
  const some = within(objects, maxBytes)
  const shown = some.length === 0 ? [shortened(first, maxBytes)] : some
  if (shown.length < total)
    return { objects: shown, ...cutNotice(shown.length, total, `${narrower} Or use detail "names".`) }
  return { objects: shown, truncated: some.length === 0 }
}

const noDescriptions: ReadonlyMap<string, Description> = new Map()

const describe = (
  sql: SqlClient,
  reader: Reader,
  facts: ReadonlyArray<ObjectFact>,
  detail: Exclude<Detail, "names">
) =>
  Effect.gen(function* () {
    if (facts.length === 0) return []
    const columns = yield* reader.columns(sql, facts)
    const described = yield* reader.describe?.(sql, facts, detail) ?? Effect.succeed(noDescriptions)
    return facts.map(
      ({ comment, id, kind, name }): SchemaObject => ({
        name,
        kind,
        ...(comment === null || comment === "" ? {} : { comment }),
        ...(columns.get(id) ?? { columns: [] }),
        ...described.get(id)
      })
    )
  })

/** Everything that can be read from, for hints; bounded. */
export const listNames = (
  adapter: AdapterService
): Effect.Effect<ReadonlyArray<ObjectFact>, AdapterFailure> =>
  Effect.map(
    withClient(adapter, (sql, reader) =>
      reader.objects(sql, { likes: [], exact: false, limit: closestAmong })
    ),
    ({ objects }) => objects
  )

/** The columns of some objects by their names, for hints. */
export const listColumns = (
  adapter: AdapterService,
  facts: ReadonlyArray<ObjectFact>
): Effect.Effect<
  ReadonlyArray<{ readonly object: string; readonly columns: ReadonlyArray<string> }>,
  AdapterFailure
> =>
  Effect.map(
    withClient(adapter, (sql, reader) => reader.columns(sql, facts)),
    (found) =>
      facts.map(({ id, name }) => ({
        object: name,
        columns: (found.get(id)?.columns ?? []).map((column) => column.name)
      }))
  )

/**
 * Looks something up in a source's catalog. A name that nothing has fails with `unknown_table` and the closest names
 * as its hint; a pattern that nothing matches answers so.
 */
export const lookUp = (
  adapter: AdapterService,
  { detail, limit, maxBytes, name }: SchemaRequest
): Effect.Effect<SchemaResult, AdapterFailure> => {
  const exact = name !== undefined && name.trim() !== "" && !isPattern(name)
  const level = detail ?? (exact ? "columns" : "names")
  const wanted = limit ?? defaultLimit[level]
  const most = level === "names" ? wanted : Math.min(wanted, Math.ceil(maxBytes / leastObjectBytes))
  return Effect.flatMap(
    withClient(adapter, (sql, reader) =>
      Effect.gen(function* () {
        const listing =
          name !== undefined && name.length > longestAsked
            ? { objects: [], total: 0 }
            : yield* reader.objects(sql, searchOf(name, most))
        const facts = exact ? spelt(name, listing.objects) : listing.objects
        if (facts.length === 0 && name !== undefined) {
          const all = yield* reader.objects(sql, { likes: [], exact: false, limit: closestAmong })
          return { hint: nothingHas(name, all.objects) }
        }
        const total = exact ? facts.length : listing.total
        const notes = exact || reader.note === undefined ? [] : [reader.note]
        return level === "names"
          ? noted(namesResult(facts, total, maxBytes), notes)
          : objectsResult(yield* describe(sql, reader, facts, level), total, maxBytes)
      })
    ),
    (found): Effect.Effect<SchemaResult, QueryFailed> => {
      if (!("hint" in found)) return Effect.succeed(found)
      return exact
        ? Effect.fail(
            new QueryFailed({
              reason: "unknown_table",
              message: `There is no table or view ${JSON.stringify(shown(name))} that can be read here.`,
              hint: found.hint
            })
          )
        : Effect.succeed({
            ...(level === "names" ? { names: {} } : { objects: [] }),
            truncated: false,
            notes: [`Nothing matches ${JSON.stringify(shown(name))}. ${found.hint}`]
          })
    }
  )
}
