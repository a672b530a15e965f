/** An adapter of one's own: it sends its statements to the HTTP service of `http-service`. */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpBody from "@effect/platform/HttpBody"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import { makeCompilerSqlite } from "@effect/sql/Statement"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { Adapter, QueryError, QueryResult, Rows } from "mcp-query"
import { ReadClient, Telemetry } from "mcp-query/adapters"

const unreachable = (cause: unknown) =>
  new QueryError.ConnectionFailed({ reason: "refused", message: QueryError.connectionMessage.refused, cause })

const unreadable = (cause: unknown) =>
  new QueryError.QueryFailed({
    reason: "engine_error",
    message: "The service's answer has no known form.",
    cause
  })

const unverifiable = new QueryError.QueryRejected({
  reason: "unverifiable",
  message: "The statement could not be checked and was not sent."
})

const Cell = Schema.Union(
  Schema.Null,
  Schema.Boolean,
  Schema.Number,
  Schema.String,
  Schema.Array(Schema.Unknown),
  Schema.Record({ key: Schema.String, value: Schema.Unknown })
)

/** What the service answers when it is asked for columnar rows. */
const Answer = Schema.Struct({ ...QueryResult.QueryResult.fields, rows: Schema.Array(Schema.Array(Cell)) })

/** The whole service in one function; interruption aborts the request, and with it the statement. */
const makeSend = (url: string) =>
  Effect.map(
    HttpClient.HttpClient,
    (client) => (sql: string, params: ReadonlyArray<unknown>) =>
      Effect.gen(function* () {
        const body = yield* Effect.orDie(HttpBody.json({ sql, params, format: "columnar" }))
        const response = yield* Effect.mapError(client.post(url, { body }), unreachable)
        if (response.status === 200)
          return yield* Effect.mapError(HttpClientResponse.schemaBodyJson(Answer)(response), unreadable)
        const failure = yield* Effect.mapError(
          HttpClientResponse.schemaBodyJson(QueryError.AdapterFailure)(response),
          unreadable
        )
        return yield* failure
      })
  )

const make = (url: string) =>
  Effect.map(makeSend(url), (send) =>
    Telemetry.traced(
      { system: "sqlite", address: new URL(url).hostname },
      {
        // The dialect: its grammar admits the statements, and its catalog is read for `schema`.
        engine: "sqlite",
        query: ({ mode, params, sql }, limits) =>
          mode !== "execute"
            ? Effect.fail(unverifiable)
            : Effect.map(send(sql, params), ({ columns, columnTypes, notes = [], rows, truncatedBy }) => {
                const builder = new Rows.RowBuilder(
                  columns.map((name, index) => ({ name, type: columnTypes[index] ?? null })),
                  limits
                )
                for (const row of rows) if (!builder.add(row)) break
                if (truncatedBy !== undefined) builder.stop(truncatedBy)
                for (const note of notes) builder.note(note)
                return builder.finish()
              }),
        explain: ({ params, sql }) =>
          Effect.map(send(`explain query plan ${sql}`, params), ({ rows }) =>
            rows.map((row) => String(row.at(-1)))
          ),
        client: ReadClient.make({
          compiler: makeCompilerSqlite(),
          system: "sqlite",
          run: (sql, params) =>
            Effect.map(send(sql, params), ({ columns, rows, truncatedBy = null, truncatedCells = [] }) => ({
              columns,
              rows,
              truncatedBy,
              truncatedCells
            }))
        }),
        report: Effect.map(send("select sqlite_version()", []), ({ rows }) => ({
          version: `SQLite ${String(rows[0]?.[0])} behind HTTP`,
          tls: url.startsWith("https:"),
          login: null,
          excessPrivileges: [],
          leastPrivilege: []
        }))
      }
    )
  )

export const layer = (url: string): Layer.Layer<Adapter.Adapter> =>
  Layer.provide(Layer.effect(Adapter.Adapter, make(url)), FetchHttpClient.layer)
