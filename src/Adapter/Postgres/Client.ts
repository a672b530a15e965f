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
import { catalogLimits } from "../../Adapter.js"
import type { AdapterFailure } from "../../QueryError.js"
import { inTime, tooLarge } from "../ClientLimits.js"
import { arrayText } from "./Container.js"
import type { Ran } from "./Execution.js"
import { type Confidential, oversized, refused } from "./Failure.js"
import type { Lease, Sessions } from "./Sessions.js"
import { maxMessageBytes, type Sink, type StatementText } from "./Wire.js"

const { maxBytes, maxRows, timeoutMs } = catalogLimits
const pageRows = 128

const parameterText = (value: unknown): string | null => {
  if (value === null || value === undefined) return null
  if (typeof value === "string") return value
  // Of one that is no moment, the engine says so.
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? String(value) : value.toISOString()
  if (ArrayBuffer.isView(value))
    return `\\x${Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("hex")}`
  if (Array.isArray(value)) return arrayText(value, parameterText)
  if (typeof value === "object") return JSON.stringify(value)
  return String(value)
}

interface Rows {
  readonly fields: ReadonlyArray<pg.FieldDef>
  readonly values: ReadonlyArray<ReadonlyArray<unknown>>
}

/** Runs one statement to its end within {@link catalogLimits}, every value by the driver's own parsers. */
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
        let size = 0
        let isWhole = true
        const sink: Sink = {
          columns: (columns) => {
            fields = columns
            parsers = columns.map(({ dataTypeID }) => pg.types.getTypeParser(dataTypeID, "text"))
          },
          row: (row) => {
            for (const text of row) size += text?.length ?? 0
            isWhole = values.length < maxRows && size <= maxBytes
            if (isWhole) values.push(row.map((text, i) => (text === null ? null : parsers[i]?.(text))))
            return isWhole
          }
        }
        // One row more than may be kept shows that there are more.
        const statement = { text: sql, values: params.map(parameterText), rows: maxRows + 1 }
        return Effect.flatMap(
          inTime(execute(statement, sink)),
          (ran): Effect.Effect<Rows, AdapterFailure> => {
            switch (ran._tag) {
              case "Completed":
                return isWhole ? Effect.succeed({ fields, values }) : Effect.fail(tooLarge())
              case "Refused":
                return Effect.fail(
                  refused(ran.error, { said: sql, prefix: 0, timedOut: ran.timedOut, confidential })
                )
              case "Oversized":
                return Effect.fail(oversized(maxMessageBytes))
            }
          }
        )
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

  const single: Run = collect((statement, sink) => sessions.run(statement, () => sink, timeoutMs))

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
