/**
 * What a caller can do about a statement that the engine refused, by the reason alone: what an engine proposes itself, and
 * what an adapter knows of its own limits, goes before.
 * For a name that does not exist it asks the catalog, bounded in time and only once the call has failed.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import type { AdapterService } from "./Adapter.js"
import type { ObjectFact } from "./CatalogReader.js"
import { closest } from "./Closest.js"
import type { Dialect } from "./Dialect.js"
import { type AdapterFailure, QueryFailed, type QueryReason } from "./QueryError.js"
import type { RowSet } from "./Rows.js"
import { CurrentCall, type Source } from "./Sources.js"

/** How long a failed call may wait for better advice. */
const patienceMs = 1000

/** How long a look-up may go on for the calls that come after. */
const lookUpMs = 10_000

/** How old the names may be; they only make a hint. */
const freshMs = 60_000

/** Tables whose columns are looked through. */
const maxTables = 20

/** The first placeholder, and the second where they are numbered. */
const placeholders = (first: string) => (/1$/.test(first) ? `${first}, ${first.slice(0, -1)}2, …` : first)

const general = (reason: QueryReason, dialect: Dialect): string | undefined => {
  switch (reason) {
    case "unknown_table":
      return dialect.catalog === undefined
        ? "Look the name up in the engine's own catalog."
        : "Call schema to see all names."
    case "unknown_column":
      return dialect.catalog === undefined
        ? "Look the table's columns up in the engine's own catalog."
        : "Call schema with the table's name to see its columns."
    case "unknown_function":
      return "Use a function of this engine's dialect, with the number and types of arguments that it takes."
    case "ambiguous_name":
      return "Write the table's name or alias in front of the column."
    case "permission_denied":
      return "The login of this source lacks that right; use another object, or ask for the right."
    case "parameters":
      return `Write ${placeholders(dialect.placeholder)} and give one value for each in params${
        dialect.parameterHint === undefined ? "" : `; ${dialect.parameterHint}`
      }.`
    case "timeout":
      return "Make the statement do less (a WHERE, an aggregate, fewer joins), see its plan with explain, or raise timeoutMs."
    case "lock_timeout":
      return "Another session holds a lock; send the statement again."
    case "resource_limit":
      return "Ask for less at once: fewer rows or columns, or an aggregate."
    default:
      return undefined
  }
}

/** What an answer that was cut says about the rest. */
export const truncationNotes = (
  { rows, truncatedBy, truncatedCells }: RowSet,
  { paging = "ORDER BY … LIMIT m OFFSET n" }: Dialect
): ReadonlyArray<string> => {
  return [
    ...(truncatedBy === "max_rows"
      ? [`There are more rows than these ${rows.length}: aggregate or filter, or page with ${paging}.`]
      : []),
    ...(truncatedBy === "max_bytes"
      ? [
          `There are more rows than these ${rows.length}, cut by size: select fewer columns, or page with ${paging}.`
        ]
      : []),
    ...(truncatedCells.length > 0 ? ["Cells were cut: read the rest of a value with substring."] : [])
  ]
}

// ---------------------------------------------------------------------------------------------------------------------
// Where in the statement

/** The index in UTF-16 of a position that counts characters from 1. */
const indexOf = (sql: string, position: number): number => {
  let index = 0
  for (let at = 1; at < position && index < sql.length; at++)
    index += (sql.codePointAt(index) ?? 0) > 0xffff ? 2 : 1
  return index
}

const startOfLine = (sql: string, line: number): number => {
  let start = 0
  for (let at = 1; at < line; at++) {
    const end = sql.indexOf("\n", start)
    if (end < 0) return start
    start = end + 1
  }
  return start
}

const quoted = /(?:"([^"]+)"|'([^']+)'|[«„“]([^»“”]+)[»“”])/u

/** A message may repeat a value of any size; what it is about stands at its beginning. */
const beginningOf = (message: string) => message.slice(0, 2000)

/** The first thing that a message quotes, in whatever language it is. */
const quotedIn = (message: string): string | undefined => {
  const match = quoted.exec(beginningOf(message))
  return match?.[1] ?? match?.[2] ?? match?.[3]
}

const longestName = 200

const isWordPart = (text: string | undefined) => text !== undefined && /[\p{L}\p{N}_$]/u.test(text)

/** Where `text` stands as a word of its own, if that is one place only. */
const onlyPlaceOf = (sql: string, text: string, from: number, to: number): number | undefined => {
  let place: number | undefined
  for (let at = sql.indexOf(text, from); at >= 0 && at < to; at = sql.indexOf(text, at + 1)) {
    const joined =
      (isWordPart(text[0]) && isWordPart(sql[at - 1])) ||
      (isWordPart(text.at(-1)) && isWordPart(sql[at + text.length]))
    if (joined) continue
    if (place !== undefined) return undefined
    place = at
  }
  return place
}

/** Where the engine's objection lies, as far as it says. */
const placeOf = (sql: string, { engine, message, reason }: QueryFailed): number | undefined => {
  if (engine?.position !== undefined) return indexOf(sql, engine.position)
  if (reason !== "syntax") return undefined
  if (/^incomplete input/.test(message)) return sql.trimEnd().length
  const near = quotedIn(message)
  if (near === undefined || near.length > longestName) return undefined
  const from = engine?.line === undefined ? 0 : startOfLine(sql, engine.line)
  const end = engine?.line === undefined ? -1 : sql.indexOf("\n", from)
  return onlyPlaceOf(sql, near, from, end < 0 ? sql.length : end)
}

const located = (sql: string, place: number): { readonly line: number; readonly column: number } => {
  const before = sql.slice(0, place)
  const start = before.lastIndexOf("\n") + 1
  return { line: before.split("\n").length, column: [...before.slice(start)].length + 1 }
}

const excerpt = (sql: string, place: number): string => {
  const line = sql.slice(place).split("\n", 1)[0] ?? ""
  const characters = [...line]
  return characters.length > 40 ? `${characters.slice(0, 40).join("")}…` : line.trimEnd()
}

const syntaxHint = (sql: string, place: number): string => {
  const { column, line } = located(sql, place)
  const rest = excerpt(sql, place)
  return `Line ${line}, column ${column}: ${rest === "" ? "the end of the statement." : rest}`
}

// ---------------------------------------------------------------------------------------------------------------------
// Names

const identifier = String.raw`(?:"(?:[^"]|"")*"|\[[^\]]*\]|${"`[^`]*`"}|[\p{L}_][\p{L}\p{N}_$]*)`
const chain = new RegExp(String.raw`${identifier}(?:\s*\.\s*${identifier})*`, "uy")

/** The name that does not exist, in whole: `u.nme`, `sales.ordrs`. */
const missingName = (sql: string, failure: QueryFailed): string | undefined => {
  const { engine } = failure
  const message = beginningOf(failure.message)
  if (engine?.position !== undefined) {
    chain.lastIndex = indexOf(sql, engine.position)
    const found = chain.exec(sql)?.[0]
    if (found !== undefined && found.length <= longestName) return found
  }
  const said = /^no such (?:table|column|view): (.+?)(?: - should this be|\. The |$)/s.exec(message)?.[1]
  const unquoted = /\b(?:column|relation) ([^\s"']+) does not exist/.exec(message)?.[1]
  const name = said?.replace(/^"(.*)"$/s, "$1") ?? unquoted ?? quotedIn(message)
  return name === undefined || name.length > longestName ? undefined : name
}

const partsOf = (name: string) =>
  (name.match(new RegExp(identifier, "gu")) ?? [name]).map((part) => part.replace(/^["[`]|["\]`]$/g, ""))

/** What stands in each kind of quotes. Brackets that nothing closes are left out first: each would be followed to the end. */
const quotedWordsOf = (text: string): ReadonlySet<string> =>
  new Set(
    [
      ...(text.match(/"[^"]*"|`[^`]*`/g) ?? []),
      ...(text.slice(0, text.lastIndexOf("]") + 1).match(/\[[^\]]*\]/g) ?? [])
    ].map((word) => word.slice(1, -1))
  )

/** Those of `facts` whose names the statement has. A table may be called `select`, and is only meant where it is quoted. */
const mentioned = (sql: string, facts: ReadonlyArray<ObjectFact>): ReadonlyArray<ObjectFact> => {
  const text = sql.toLowerCase()
  const words = new Set(text.match(/[\p{L}_][\p{L}\p{N}_$]*/gu) ?? [])
  const quotedWords = quotedWordsOf(text)
  return facts
    .filter(({ bare, name }) => {
      const low = bare.toLowerCase()
      if (!/^[\p{L}_][\p{L}\p{N}_$]*$/u.test(low)) return text.includes(low)
      return (/["[`]/.test(name) ? quotedWords : words).has(low)
    })
    .slice(0, maxTables)
}

/** A name for the `name` argument of the tool `schema`. */
const argumentOf = ({ bare, name, qualified }: ObjectFact) =>
  /["[`]/.test(name) ? (partsOf(name).length > 1 ? qualified : bare) : name

const valueOf = <A, E>(exit: Exit.Exit<A, E>): Option.Option<A> =>
  Exit.isSuccess(exit) ? Option.some(exit.value) : Option.none()

/**
 * Answers that may be some seconds old, by key; bounded. A look-up belongs to nobody's call, so that it ends for the
 * next one where it took too long for this one.
 */
const makeCache = <A>() => {
  const kept = new Map<string, { readonly until: number; readonly value: A }>()
  const underWay = new Map<string, Fiber.Fiber<A, AdapterFailure>>()
  /** None where the look-up failed, for whatever reason: the failure to tell of is the one that the statement had. */
  return (key: string, compute: Effect.Effect<A, AdapterFailure>): Effect.Effect<Option.Option<A>> =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const found = kept.get(key)
      if (found !== undefined && found.until > now) return Option.some(found.value)
      const begun = underWay.get(key)
      if (begun !== undefined) return valueOf(yield* Fiber.await(begun))
      const fiber = yield* Effect.forkDaemon(
        compute.pipe(
          Effect.tap((value) =>
            Effect.sync(() => {
              if (kept.size >= 100) kept.clear()
              kept.set(key, { until: now + freshMs, value })
            })
          ),
          Effect.ensuring(Effect.sync(() => underWay.delete(key)))
        )
      )
      underWay.set(key, fiber)
      return valueOf(yield* Fiber.await(fiber))
    })
}

export interface Hints {
  /** The same failure, with what its caller can do next. Never fails, and takes no more than a second. */
  readonly improve: (source: Source, sql: string, failure: QueryFailed) => Effect.Effect<QueryFailed>
  /** A statement's run whose refusal comes with advice. */
  readonly onFailure: (
    source: Source,
    sql: string
  ) => <A, E, R>(run: Effect.Effect<A, E | QueryFailed, R>) => Effect.Effect<A, E | QueryFailed, R>
}

export const make = (): Hints => {
  const names = makeCache<ReadonlyArray<ObjectFact>>()
  const columns =
    makeCache<ReadonlyArray<{ readonly object: string; readonly columns: ReadonlyArray<string> }>>()
  const load = Effect.promise(() => import("./Catalog.js"))

  const ask = <A>(source: Source, use: (adapter: AdapterService) => Effect.Effect<A, AdapterFailure>) =>
    // A look-up is no attempt of the call, and does not wait for the client.
    Effect.flatMap(Ref.make(0), (attempts) =>
      Effect.provideService(source.run(lookUpMs, use), CurrentCall, { attempts, awaitReader: Effect.void })
    )

  const namesOf = (source: Source) =>
    names(
      source.id,
      Effect.flatMap(load, (Catalog) => ask(source, Catalog.listNames))
    )

  const ofTable = (source: Source, name: string) =>
    Effect.gen(function* () {
      const Catalog = yield* load
      const listed = yield* namesOf(source)
      if (Option.isNone(listed)) return undefined
      const all = listed.value
      const parts = partsOf(name)
      const forms = [parts.join("."), parts.at(-1) ?? "", parts[0] ?? ""]
      const near = forms.map((form) => Catalog.closestNames(form, all)).find((found) => found.length > 0)
      return near === undefined ? Catalog.fewNames(all) : `Closest names: ${near.join(", ")}.`
    })

  const ofColumn = (source: Source, sql: string, name: string) =>
    Effect.gen(function* () {
      const Catalog = yield* load
      const parts = partsOf(name)
      const wanted = parts.at(-1) ?? name
      const listed = yield* namesOf(source)
      if (Option.isNone(listed)) return undefined
      const inStatement = mentioned(sql, listed.value)
      const qualifier = parts.at(-2)?.toLowerCase()
      const named = inStatement.filter(({ bare }) => bare.toLowerCase() === qualifier)
      const tables = named.length > 0 ? named : inStatement
      if (tables.length === 0) return undefined
      const found = yield* columns(
        JSON.stringify([source.id, ...tables.map(({ id }) => id)]),
        ask(source, (adapter) => Catalog.listColumns(adapter, tables))
      )
      if (Option.isNone(found)) return undefined
      const owners = new Map<string, string>()
      for (const { columns, object } of found.value)
        for (const column of columns) owners.set(column, owners.has(column) ? "" : object)
      const plain = (column: string) => column.replace(/^["[](.*)["\]]$/, "$1")
      const byPlain = new Map([...owners.keys()].map((column) => [plain(column), column]))
      const near = closest(wanted, byPlain.keys()).map((each) => {
        const column = byPlain.get(each) ?? each
        const owner = owners.get(column) ?? ""
        return tables.length === 1 || owner === "" ? column : `${owner}.${column}`
      })
      const [only, second] = tables
      const see =
        only !== undefined && second === undefined
          ? [`Call schema with name "${argumentOf(only)}" to see its columns.`]
          : []
      const said = [...(near.length > 0 ? [`Closest columns: ${near.join(", ")}.`] : []), ...see]
      return said.length > 0 ? said.join(" ") : undefined
    })

  const found = (source: Source, sql: string, failure: QueryFailed): Effect.Effect<string | undefined> => {
    const name = missingName(sql, failure)
    if (name === undefined || source.dialect.catalog === undefined) return Effect.succeed(undefined)
    switch (failure.reason) {
      case "unknown_table":
        return ofTable(source, name)
      case "unknown_column":
        return ofColumn(source, sql, name)
      default:
        return Effect.succeed(undefined)
    }
  }

  const improve: Hints["improve"] = (source, sql, failure) =>
    Effect.gen(function* () {
      const { cause, engine, hint, message, reason } = failure
      const place = placeOf(sql, failure)
      const specific =
        reason === "syntax" && place !== undefined
          ? Option.some(syntaxHint(sql, place))
          : yield* found(source, sql, failure).pipe(
              Effect.timeoutOption(patienceMs),
              Effect.map(Option.flatMap(Option.fromNullable))
            )
      const advice =
        Option.getOrUndefined(specific) ?? (hint === undefined ? general(reason, source.dialect) : undefined)
      const text = [hint, advice].filter((each) => each !== undefined).join(" ")
      return new QueryFailed({
        reason,
        message,
        ...(text === "" ? {} : { hint: text }),
        ...(engine === undefined && place === undefined
          ? {}
          : { engine: { ...engine, ...(place === undefined ? {} : located(sql, place)) } }),
        ...(cause === undefined ? {} : { cause })
      })
    })

  return {
    improve,
    onFailure: (source, sql) => (run) =>
      Effect.catchIf(
        run,
        (failure) => failure instanceof QueryFailed,
        (failure) => Effect.flatMap(improve(source, sql, failure), Effect.fail)
      )
  }
}
