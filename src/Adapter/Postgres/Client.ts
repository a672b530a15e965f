/**
 * An `@effect/sql` client on the adapter's own sessions. Every statement runs as the tools' statements do, in a
 * read-only transaction of its own, or in the transaction that `withTransaction` opens (read-only as well). Values are
 * those of the driver, as in `@effect/sql-pg`.
 */
import * as Reactivity from "@effect/experimental/Reactivity"
import * as SqlClient from "@effect/sql/SqlClient"
import type { Connection } from "@effect/sql/SqlConnection"
import { SqlError } from "@effect/sql/SqlError"
import { makeCompiler } from "@effect/sql-pg/PgClient"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Scope } from "effect/Scope"
import * as Stream from "effect/Stream"
import pg from "pg"
import type { AdapterFailure } from "../../QueryError.js"
import { arrayText } from "./Container.js"
import type { Ran } from "./Execution.js"
import { type Confidential, oversized, refused } from "./Failure.js"
import type { Lease, Sessions } from "./Sessions.js"
import { maxMessageBytes, type Sink, type StatementText } from "./Wire.js"

/** As many rows as a message can ask for. */
const allRows = 2_147_483_647
const pageRows = 128

const parameterText = (value: unknown): string | null => {
  if (value === null || value === undefined) return null
  if (typeof value === "string") return value
  if (value instanceof Date) return value.toISOString()
  if (value instanceof Uint8Array) return `\\x${Buffer.from(value).toString("hex")}`
  if (Array.isArray(value)) return arrayText(value, parameterText)
  if (typeof value === "object") return JSON.stringify(value)
  return String(value)
}

interface Rows {
  readonly fields: ReadonlyArray<pg.FieldDef>
  readonly values: ReadonlyArray<ReadonlyArray<unknown>>
}

/** Runs one statement to its end, every value by the driver's own parsers. */
type Run = (sql: string, params: ReadonlyArray<unknown>) => Effect.Effect<Rows, SqlError>

const objects = ({ fields, values }: Rows): ReadonlyArray<Record<string, unknown>> =>
  values.map((row) => Object.fromEntries(fields.map(({ name }, i) => [name, row[i]])))

const connection = (run: Run, stream: Connection["executeStream"]): Connection => {
  const execute: Connection["execute"] = (sql, params, transformRows) =>
    Effect.map(run(sql, params), (rows) => (transformRows ? transformRows(objects(rows)) : objects(rows)))
  return {
    execute,
    executeUnprepared: execute,
    executeRaw: (sql, params) =>
      Effect.map(run(sql, params), (rows) => ({
        rows: objects(rows),
        fields: rows.fields,
        rowCount: rows.values.length
      })),
    executeValues: (sql, params) => Effect.map(run(sql, params), ({ values }) => values),
    executeStream: stream
  }
}

export const make = (
  sessions: Sessions,
  confidential: Confidential
): Effect.Effect<SqlClient.SqlClient, never, Scope> => {
  const sqlError = (cause: AdapterFailure) => new SqlError({ cause, message: cause.message })

  const collect =
    (execute: (statement: StatementText, sink: Sink) => Effect.Effect<Ran, AdapterFailure>): Run =>
    (sql, params) =>
      Effect.suspend(() => {
        let fields: ReadonlyArray<pg.FieldDef> = []
        let parsers: ReadonlyArray<(text: string) => unknown> = []
        const values: Array<ReadonlyArray<unknown>> = []
        const sink: Sink = {
          columns: (columns) => {
            fields = columns
            parsers = columns.map(({ dataTypeID }) => pg.types.getTypeParser(dataTypeID, "text"))
          },
          row: (row) => values.push(row.map((text, i) => (text === null ? null : parsers[i]?.(text)))) > 0
        }
        const statement = { text: sql, values: params.map(parameterText), rows: allRows }
        return Effect.flatMap(execute(statement, sink), (ran): Effect.Effect<Rows, AdapterFailure> => {
          switch (ran._tag) {
            case "Completed":
              return Effect.succeed({ fields, values })
            case "Refused":
              return Effect.fail(
                refused(ran.error, { said: sql, prefix: 0, timedOut: ran.timedOut, confidential })
              )
            case "Oversized":
              return Effect.fail(oversized(maxMessageBytes))
          }
        })
      }).pipe(Effect.mapError(sqlError))

  const reserved = (lease: Lease): Run => collect(lease.run)

  /** Pages of a cursor, inside a transaction. */
  const pages =
    (run: Run): Connection["executeStream"] =>
    (sql, params, transformRows) =>
      Stream.unwrap(
        Effect.as(
          run(`declare mcp_query_page no scroll cursor for ${sql}`, params),
          Stream.repeatEffectChunkOption(
            Effect.flatMap(
              Effect.mapError(run(`fetch ${pageRows} from mcp_query_page`, []), Option.some),
              (rows) =>
                rows.values.length > 0
                  ? Effect.succeed(
                      Chunk.unsafeFromArray(transformRows ? transformRows(objects(rows)) : objects(rows))
                    )
                  : Effect.fail(Option.none<SqlError>())
            )
          ).pipe(Stream.ensuring(Effect.ignore(run("close mcp_query_page", []))))
        )
      )

  const reserve = Effect.map(Effect.mapError(sessions.reserve, sqlError), reserved)

  const single: Run = collect((statement, sink) => sessions.run(statement, () => sink, allRows))

  const streamed: Connection["executeStream"] = (sql, params, transformRows) =>
    Stream.unwrapScoped(
      Effect.gen(function* () {
        const run = yield* reserve
        yield* run("begin read only", [])
        return pages(run)(sql, params, transformRows)
      })
    )

  return SqlClient.make({
    acquirer: Effect.succeed(connection(single, streamed)),
    transactionAcquirer: Effect.map(reserve, (run) => connection(run, pages(run))),
    beginTransaction: "BEGIN READ ONLY",
    compiler: makeCompiler(),
    spanAttributes: [
      ["db.system.name", "postgresql"],
      ["db.namespace", sessions.login.database]
    ]
  }).pipe(Effect.provide(Reactivity.layer))
}
