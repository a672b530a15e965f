/** The adapter service over a pool of child processes: the same for a database file and for a workbook. */
import * as Effect from "effect/Effect"
import {
  type AdapterService,
  type CallLimits,
  catalogLimits,
  type Engine,
  type SourceReport,
  type Statement
} from "../../Adapter.js"
import type { AdapterFailure } from "../../QueryError.js"
import type { RowSet } from "../../Rows.js"
import type { ChildPool } from "./ChildPool.js"
import type { Refusal, StatementRequest } from "./Protocol.js"

export interface ChildAdapterOptions {
  readonly engine: Engine
  readonly pool: ChildPool
  readonly toFailure: (refusal: Refusal) => AdapterFailure
  /** What `report` says of the product, given SQLite's version. */
  readonly describe: (version: string) => string
}

/** A call waits for another process' lock for most of its own time, which has begun to pass before a child is free. */
const lockDeadline = (timeoutMs: number) => Date.now() + timeoutMs * 0.8

/** The plan's nodes (id, parent, unused, detail) as indented lines. */
const planLines = ({ rows }: RowSet): ReadonlyArray<string> => {
  const depth = new Map<unknown, number>([[0, -1]])
  return rows.map(([id, parent, , detail]) => {
    const level = (depth.get(parent) ?? -1) + 1
    depth.set(id, level)
    return `${"  ".repeat(level)}${String(detail)}`
  })
}

export const make = ({ describe, engine, pool, toFailure }: ChildAdapterOptions): AdapterService => {
  const run = (
    kind: StatementRequest["kind"],
    { params, sql }: Statement,
    limits: CallLimits
  ): Effect.Effect<RowSet, AdapterFailure> =>
    Effect.flatMap(
      pool.run({ kind, sql, params, limits, lockDeadline: lockDeadline(limits.timeoutMs) }),
      (reply) => (reply.ok ? Effect.succeed(reply.rows) : Effect.fail(toFailure(reply.refusal)))
    )

  const catalog = (sql: string, params: ReadonlyArray<unknown>) =>
    run(
      "catalog",
      { sql, params: params.map((value) => (value === null ? null : String(value))) },
      catalogLimits
    )

  return {
    engine,
    query: (query, limits) => run("query", query, limits),
    explain: (query, limits) =>
      Effect.map(run("explain", query, { ...limits, format: "columnar" }), planLines),
    client: Effect.gen(function* () {
      const [{ make }, { makeCompilerSqlite }] = yield* Effect.promise(() =>
        Promise.all([import("../ReadClient.js"), import("@effect/sql/Statement")])
      )
      return yield* make({ compiler: makeCompilerSqlite(), system: "sqlite", run: catalog })
    }),
    report: Effect.map(
      catalog("select sqlite_version(), (select count(*) from sqlite_schema)", []),
      ({ rows }): SourceReport => ({
        version: describe(String(rows[0]?.[0])),
        tls: null,
        login: null,
        excessPrivileges: [],
        leastPrivilege: []
      })
    )
  }
}
