/**
 * The port: what every engine offers to the tools. Implementations stand in `Adapter/`, each with a scoped `make`
 * and a `layer(config)`; nothing is contacted before the first call.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { Brand } from "effect/Brand"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Scope } from "effect/Scope"
import type { Dialect, Mode } from "./Dialect.js"
import type { AdapterFailure } from "./QueryError.js"
import type { RowLimits, RowSet } from "./Rows.js"

/** Our engines. An application brings others with a `Dialect`. */
export type Engine = "sqlite" | "postgres" | "mssql" | "excel" | "csv"

/** A bigint is an integer like any other, also beyond 2^53. */
export type Parameter = string | number | bigint | boolean | null

/** A statement as a caller wrote it, with its positional parameters. */
export interface Statement {
  readonly sql: string
  readonly params: ReadonlyArray<Parameter>
}

/**
 * A statement that Policy has found to be one single read. Only `Policy.ts` mints it, so that no adapter can be
 * handed unchecked text.
 */
export type AdmittedQuery = Statement & {
  /** Whose rules admitted it. */
  readonly engine: Engine | Dialect
  /**
   * `prepare_only`: the grammar here could not read the statement; the engine may say what is wrong with it, but must
   * not execute it. An engine that accepts it fails with `QueryRejected` `unverifiable`.
   */
  readonly mode: Mode
} & Brand<"AdmittedQuery">

/** Limits of one call. `timeoutMs` is what remains of the call's time; the caller interrupts when it has passed. */
export interface CallLimits extends RowLimits {
  readonly timeoutMs: number
}

/**
 * Limits of a program's own statements, as the {@link AdapterService.client} runs them: wide enough for any catalog, and
 * still a bound. Nothing is cut there: a statement beyond them fails with `query_failed` `resource_limit` or `timeout`.
 */
export const catalogLimits: CallLimits = {
  maxRows: 200_000,
  maxBytes: 64 * 2 ** 20,
  maxCellBytes: 64 * 2 ** 20,
  timeoutMs: 30_000,
  format: "columnar"
}

/** What `check` learns about a source. */
export interface SourceReport {
  /** Product and version as the engine says it. */
  readonly version: string
  /** Null where there is no network in between. */
  readonly tls: boolean | null
  /** The login in use; null where the engine has none. */
  readonly login: string | null
  /** What the login may do beyond reading, in the engine's own words. Empty: nothing. */
  readonly excessPrivileges: ReadonlyArray<string>
  /** Statements that make a login with no more than it needs. Empty where none is needed. */
  readonly leastPrivilege: ReadonlyArray<string>
}

/** The service every adapter provides. Its failure channel is exactly {@link AdapterFailure}. */
export interface AdapterService {
  /** By whose rules its statements are admitted: one of our engines, or the Dialect of an application's own engine. */
  readonly engine: Engine | Dialect
  /** Runs one admitted read. Interruption stops the statement in the engine. */
  readonly query: (query: AdmittedQuery, limits: CallLimits) => Effect.Effect<RowSet, AdapterFailure>
  /** The engine's plan as lines of text. The statement is never executed. */
  readonly explain: (
    query: AdmittedQuery,
    limits: CallLimits
  ) => Effect.Effect<ReadonlyArray<string>, AdapterFailure>
  /**
   * An `@effect/sql` client on the adapter's own connections, for catalogs and for embedding applications. Its
   * statements fail with a `SqlError` whose `cause` is an {@link AdapterFailure}; an answer within {@link catalogLimits}
   * is whole, and one beyond them is a failure.
   */
  readonly client: Effect.Effect<SqlClient, AdapterFailure, Scope>
  readonly report: Effect.Effect<SourceReport, AdapterFailure>
}

/** The same adapter, which runs nothing that the rules of another engine have admitted. */
export const guarded = (service: AdapterService): AdapterService => {
  const own =
    <A>(run: (query: AdmittedQuery, limits: CallLimits) => Effect.Effect<A, AdapterFailure>) =>
    (query: AdmittedQuery, limits: CallLimits) =>
      query.engine === service.engine
        ? run(query, limits)
        : Effect.dieMessage("The statement was admitted for another engine.")
  return { ...service, query: own(service.query), explain: own(service.explain) }
}

export class Adapter extends Context.Tag("mcp-query/Adapter")<Adapter, AdapterService>() {}
