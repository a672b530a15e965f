/** The adapter service over a pool of child processes: the same for a database file and for a workbook. */
import * as Effect from "effect/Effect"
import {
  type AdapterService,
  type CallLimits,
  catalogLimits,
  type Engine,
  type Parameter,
  type SourceReport
} from "../../Adapter.js"
import { type AdapterFailure, QueryFailed } from "../../QueryError.js"
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

/** A value that a program gives the client, as it is. The driver would take NaN for NULL, and has no other kinds. */
const toParameter = (value: unknown, index: number): Effect.Effect<Parameter | Uint8Array, QueryFailed> => {
  if (value === null || value === undefined) return Effect.succeed(null)
  if (value instanceof Uint8Array) return Effect.succeed(value)
  if (value instanceof Int8Array)
    return Effect.succeed(new Uint8Array(value.buffer, value.byteOffset, value.byteLength))
  if (typeof value === "string" || typeof value === "bigint" || typeof value === "boolean")
    return Effect.succeed(value)
  if (typeof value === "number" && !Number.isNaN(value)) return Effect.succeed(value)
  return Effect.fail(
    new QueryFailed({
      reason: "parameters",
      message: `Parameter ${index + 1} has no SQLite type.`,
      hint: "Give text, a number, a bigint, a boolean, bytes or null; a Date as text in the column's own form."
    })
  )
}

export const make = ({ describe, engine, pool, toFailure }: ChildAdapterOptions): AdapterService => {
  const run = (
    kind: StatementRequest["kind"],
    { params, sql }: Pick<StatementRequest, "params" | "sql">,
    limits: CallLimits
  ): Effect.Effect<RowSet, AdapterFailure> =>
    Effect.flatMap(
      pool.run({ kind, sql, params, limits, lockDeadline: lockDeadline(limits.timeoutMs) }),
      (reply) => (reply.ok ? Effect.succeed(reply.rows) : Effect.fail(toFailure(reply.refusal)))
    )

  const catalog = (sql: string, values: ReadonlyArray<unknown>) =>
    Effect.flatMap(Effect.forEach(values, toParameter), (params) =>
      run("catalog", { sql, params }, catalogLimits)
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
