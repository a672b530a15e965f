/** An adapter for an engine that is none of ours: DuckDB, by its own driver. */
import {
  DuckDBBlobValue,
  type DuckDBConnection,
  DuckDBInstance,
  type DuckDBResult,
  type DuckDBValueConverter,
  JsonDuckDBValueConverter
} from "@duckdb/node-api"
import { makeCompilerSqlite } from "@effect/sql/Statement"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { Adapter, QueryError, Rows } from "mcp-query"
import { ReadClient, Telemetry } from "mcp-query/adapters"
import { closedOff, dialect, rejected } from "./DuckDbDialect.js"

const reasons: ReadonlyArray<readonly [RegExp, QueryError.QueryReason]> = [
  [/^Parser Error/, "syntax"],
  [/^Catalog Error: Table /, "unknown_table"],
  [/^Catalog Error: .*Function /, "unknown_function"],
  [/^Binder Error: (Referenced|Table .* does not have a) column/, "unknown_column"],
  [/^Binder Error: Ambiguous/, "ambiguous_name"],
  [/^Invalid Input Error: .*parameter/, "parameters"],
  [/^Conversion Error/, "type_mismatch"],
  [/^Out of Range Error/, "out_of_range"],
  [/^Permission Error/, "permission_denied"],
  [/^Out of Memory Error/, "resource_limit"]
]

const said = (cause: unknown) => (cause instanceof Error ? cause.message : String(cause))

/** The engine's own sentence, without the excerpt of the statement beneath it. */
const refused = (cause: unknown) => {
  const message = said(cause).split("\n\nLINE ")[0] ?? ""
  const reason = reasons.find(([pattern]) => pattern.test(message))?.[1] ?? "engine_error"
  return new QueryError.QueryFailed({ reason, message, cause })
}

const unreachable = (cause: unknown) => {
  const missing = /does not exist/.test(said(cause))
  return new QueryError.ConnectionFailed({
    reason: missing ? "file_not_found" : "file_unreadable",
    message: missing ? "The file does not exist." : "The file cannot be read as a DuckDB database.",
    cause
  })
}

/** Integers as numbers where they are safe, bytes as bytes, all else as DuckDB's driver writes it in JSON. */
const converter: DuckDBValueConverter<Rows.Cell> = (value, type) =>
  typeof value === "bigint" && Number.isSafeInteger(Number(value))
    ? Number(value)
    : value instanceof DuckDBBlobValue
      ? value.bytes
      : JsonDuckDBValueConverter(value, type, JsonDuckDBValueConverter)

/** Opened by the first statement, and by the next one where that failed; closed with the adapter. */
const makeOpen = (file: string) =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    const [opened, forget] = yield* Effect.cachedInvalidateWithTTL(
      Effect.acquireRelease(
        Effect.tryPromise({
          try: () => DuckDBInstance.create(file, { ...closedOff, access_mode: "READ_ONLY" }),
          catch: unreachable
        }),
        (instance) => Effect.sync(() => instance.closeSync())
      ).pipe(Scope.extend(scope)),
      Duration.infinity
    )
    return Effect.tapError(opened, () => forget)
  })

/** Interruption stops the statement in the engine, and waits until it has stopped. */
const stoppable = <A>(connection: DuckDBConnection, run: () => Promise<A>) =>
  Effect.async<A, QueryError.QueryFailed>((resume) => {
    const running = run().then(
      (value) => resume(Effect.succeed(value)),
      (cause) => resume(Effect.fail(refused(cause)))
    )
    const stop = Effect.delay(
      Effect.sync(() => connection.interrupt()),
      "10 millis"
    )
    return Effect.raceFirst(
      Effect.promise(() => running),
      Effect.forever(stop)
    )
  })

/** Rows as they come, and no more of them than are wanted. */
const read = async (result: DuckDBResult, limits: Adapter.CallLimits) => {
  const types = result.columnTypes()
  const builder = new Rows.RowBuilder(
    result.columnNames().map((name, index) => ({ name, type: types[index]?.toString() ?? null })),
    limits
  )
  for (;;) {
    const chunk = await result.fetchChunk()
    if (chunk === null || chunk.rowCount === 0) return builder.finish()
    for (const row of chunk.convertRows(converter)) if (!builder.add(row)) return builder.finish()
  }
}

const make = (file: string) =>
  Effect.map(makeOpen(file), (open): Adapter.AdapterService => {
    /** On a connection of its own, so that stopping one statement stops no other. */
    const on = <A>(use: (connection: DuckDBConnection) => Promise<A>) =>
      Effect.acquireUseRelease(
        Effect.flatMap(open, (instance) =>
          Effect.tryPromise({ try: () => instance.connect(), catch: unreachable })
        ),
        (connection) => stoppable(connection, () => use(connection)),
        (connection) => Effect.sync(() => connection.closeSync())
      )

    const rows = (
      sql: string,
      params: ReadonlyArray<Adapter.Parameter>,
      limits: Adapter.CallLimits = Adapter.catalogLimits
    ) => on(async (connection) => read(await connection.stream(sql, [...params]), limits))

    return {
      engine: dialect,
      query: ({ mode, params, sql }, limits) =>
        mode === "execute"
          ? rows(sql, params, limits)
          : Effect.zipRight(
              on((connection) => connection.prepare(sql)),
              rejected("unverifiable", "The statement could not be checked and was not sent.")
            ),
      explain: ({ params, sql }, limits) =>
        Effect.map(rows(`explain ${sql}`, params, limits), (plan) =>
          plan.rows.flatMap((row) => String(row.at(-1)).split("\n"))
        ),
      client: ReadClient.make({
        compiler: makeCompilerSqlite(),
        system: "duckdb",
        run: (sql, params) =>
          rows(
            sql,
            params.map((value) => (value === null ? null : String(value)))
          )
      }),
      report: Effect.map(rows("select version()", []), (version) => ({
        version: `DuckDB ${String(version.rows[0]?.[0])}`,
        tls: null,
        login: null,
        excessPrivileges: [],
        leastPrivilege: []
      }))
    }
  })

/** An adapter for one database file. */
export const layer = (file: string): Layer.Layer<Adapter.Adapter> =>
  Layer.scoped(
    Adapter.Adapter,
    Effect.map(make(file), (service) => Telemetry.traced({ system: "duckdb" }, Adapter.guarded(service)))
  )
