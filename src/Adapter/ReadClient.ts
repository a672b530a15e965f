/**
 * An `@effect/sql` client over an adapter's own way of running statements. That package is loaded on first use, because
 * neither a query nor the start of the server needs it.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { Connection } from "@effect/sql/SqlConnection"
import type { Compiler } from "@effect/sql/Statement"
import * as Effect from "effect/Effect"
import type { Scope } from "effect/Scope"
import * as Stream from "effect/Stream"
import type { AdapterFailure } from "../QueryError.js"
import type { RowSet } from "../Rows.js"
import { inTime, tooLarge } from "./ClientLimits.js"

/** What of an answer a client needs. */
export type Table = Pick<RowSet, "columns" | "rows" | "truncatedBy" | "truncatedCells">

export interface ReadClientOptions {
  readonly compiler: Compiler
  /** OpenTelemetry's `db.system.name`. */
  readonly system: string
  /** Runs a statement of a program, not of a caller, within `catalogLimits`; what it runs on is read-only. */
  readonly run: (sql: string, params: ReadonlyArray<unknown>) => Effect.Effect<Table, AdapterFailure>
}

const whole = (table: Table): Effect.Effect<Table, AdapterFailure> =>
  table.truncatedBy === null && table.truncatedCells.length === 0
    ? Effect.succeed(table)
    : Effect.fail(tooLarge())

const records = ({ columns, rows }: Table) =>
  rows.map((row) => Object.fromEntries(columns.map((column, index) => [column, row[index]])))

/**
 * A client whose statements fail with a `SqlError` that has the adapter's failure as its `cause`, as the port asks.
 * Streams are read whole before their first element.
 */
export const make = (options: ReadClientOptions): Effect.Effect<SqlClient, never, Scope> =>
  Effect.gen(function* () {
    const [Reactivity, SqlClient, { SqlError }] = yield* Effect.promise(() =>
      Promise.all([
        import("@effect/experimental/Reactivity"),
        import("@effect/sql/SqlClient"),
        import("@effect/sql/SqlError")
      ])
    )
    const run = (sql: string, params: ReadonlyArray<unknown>) =>
      Effect.mapError(
        Effect.flatMap(inTime(options.run(sql, params)), whole),
        (failure) => new SqlError({ cause: failure, message: failure.message })
      )
    const execute: Connection["execute"] = (sql, params, transform) =>
      Effect.map(run(sql, params), (table) => {
        const rows = records(table)
        return transform === undefined ? rows : transform(rows)
      })
    const connection: Connection = {
      execute,
      executeUnprepared: execute,
      executeRaw: run,
      executeValues: (sql, params) => Effect.map(run(sql, params), ({ rows }) => rows),
      executeStream: (sql, params, transform) =>
        Stream.unwrap(Effect.map(execute(sql, params, transform), Stream.fromIterable))
    }
    return yield* Effect.provide(
      SqlClient.make({
        acquirer: Effect.succeed(connection),
        compiler: options.compiler,
        spanAttributes: [["db.system.name", options.system]]
      }),
      Reactivity.layer
    )
  })
