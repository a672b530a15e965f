/**
 * SQL Server behind the port. Statements run on the adapter's own connections, because a general client can neither
 * stop one nor read every value without loss.
 */
import * as Effect from "effect/Effect"
import type { Scope } from "effect/Scope"
import { type AdapterService, type CallLimits, catalogLimits, type Statement } from "../../Adapter.js"
import { type AdapterFailure, QueryRejected } from "../../QueryError.js"
import { RowBuilder, type RowSet } from "../../Rows.js"
import type { Config } from "./Config.js"
import { execute, parameterName } from "./Execution.js"
import { explain } from "./Explain.js"
import { parameterFault } from "./ParameterCount.js"
import { report } from "./Report.js"
import * as Sessions from "./Sessions.js"

const unverifiable = new QueryRejected({
  reason: "unverifiable",
  message: "The statement could not be checked and was not run."
})

/** The client's compiler calls its parameters `@1`, `@2`, …. */
const clientParameterName = (position: number) => String(position)

/**
 * An adapter for one database. Its connections are made by the calls that need them and end with the scope. The login
 * should be one that may only read (see `report`): the dialect has no read-only session.
 */
export const make = (config: Config): Effect.Effect<AdapterService, never, Scope> =>
  Effect.map(Sessions.make(config), (sessions): AdapterService => {
    const run = (
      sql: string,
      params: ReadonlyArray<unknown>,
      limits: CallLimits,
      nameOf = parameterName
    ): Effect.Effect<RowSet, AdapterFailure> =>
      sessions.transact(limits.timeoutMs, (wire) =>
        Effect.suspend(() => {
          let builder = new RowBuilder([], limits)
          const sink = {
            columns: (columns: ConstructorParameters<typeof RowBuilder>[0]) => {
              builder = new RowBuilder(columns, limits)
            },
            row: (cells: Parameters<RowBuilder["add"]>[0]) => builder.add(cells)
          }
          const { maxCellBytes } = limits
          return Effect.map(
            execute(wire, { sql, kind: "statement", params, nameOf, sink, maxCellBytes }),
            (ending) => ({ ending, value: builder.finish() })
          )
        })
      )

    const checked = <A>(
      query: Statement & { readonly mode: string },
      use: Effect.Effect<A, AdapterFailure>
    ): Effect.Effect<A, AdapterFailure> =>
      Effect.suspend(() => {
        if (query.mode !== "execute") return Effect.fail(unverifiable)
        const fault = parameterFault(query.sql, query.params.length)
        return fault === undefined ? use : Effect.fail(fault)
      })

    return {
      engine: "mssql",
      query: (query, limits) => checked(query, run(query.sql, query.params, limits)),
      explain: (query, limits) =>
        checked(
          query,
          sessions.exclusive((wire) => explain(wire, query, limits))
        ),
      client: Effect.gen(function* () {
        const [{ make }, { makeCompiler }] = yield* Effect.promise(() =>
          Promise.all([import("../ReadClient.js"), import("@effect/sql-mssql/MssqlClient")])
        )
        return yield* make({
          compiler: makeCompiler(),
          system: "microsoft.sql_server",
          run: (sql, params) => run(sql, params, catalogLimits, clientParameterName)
        })
      }),
      report: sessions.exclusive((wire) =>
        report(
          (sql) =>
            Effect.suspend(() => {
              const rows: Array<ReadonlyArray<unknown>> = []
              const sink = {
                columns: () => {},
                row: (cells: ReadonlyArray<unknown>) => rows.push(cells) < 10_000
              }
              return Effect.as(execute(wire, { sql, kind: "batch", sink, maxCellBytes: 4096 }), rows)
            }),
          wire.encrypted
        )
      )
    }
  })
