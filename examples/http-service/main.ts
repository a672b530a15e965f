/**
 * One adapter in an HTTP service. `node main.js shop.db`, then
 * `curl localhost:3000/query -H 'content-type: application/json' -d '{"sql":"select 1 as one"}'`.
 *
 * A caller that hangs up interrupts its request, which stops the statement in the engine.
 */
import { createServer } from "node:http"
import * as HttpRouter from "@effect/platform/HttpRouter"
import * as HttpServer from "@effect/platform/HttpServer"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { Adapter, Limits, Policy, QueryError, QueryResult } from "mcp-query"
import { Sqlite } from "mcp-query/adapters"

const Body = Schema.Struct({
  sql: Schema.NonEmptyString,
  params: Schema.optionalWith(
    Schema.Array(Schema.Union(Schema.String, Schema.Number, Schema.Boolean, Schema.Null)),
    { default: () => [] }
  ),
  format: Schema.optionalWith(Schema.Literal("records", "columnar"), { default: () => "records" as const })
})

const timedOut = new QueryError.QueryFailed({
  reason: "timeout",
  message: "The statement was stopped after 5 s."
})

const answer = Effect.gen(function* () {
  const { format, params, sql } = yield* HttpServerRequest.schemaBodyJson(Body)
  const adapter = yield* Adapter.Adapter
  const query = yield* Policy.admit(adapter.engine, { sql, params })
  const [duration, rows] = yield* adapter
    .query(query, { ...Limits.defaultLimits, format })
    .pipe(Effect.timeoutFail({ duration: "5 seconds", onTimeout: () => timedOut }), Effect.timed)
  return yield* HttpServerResponse.json(QueryResult.fromRowSet(rows, format, Duration.toMillis(duration)))
})

/** The failure in the form of its Schema, so that a caller decodes what this service had; the cause stays here. */
const failed = (status: number) => (failure: QueryError.AdapterFailure) =>
  Effect.flatMap(Schema.encode(QueryError.AdapterFailure)(failure), ({ cause: _, ...error }) =>
    HttpServerResponse.json(error, { status })
  )

const router = HttpRouter.empty.pipe(
  HttpRouter.post(
    "/query",
    answer.pipe(
      Effect.catchTags({
        ConnectionFailed: failed(503),
        QueryFailed: failed(422),
        QueryRejected: failed(403),
        ParseError: ({ message }) => HttpServerResponse.json({ message }, { status: 400 }),
        RequestError: ({ message }) => HttpServerResponse.json({ message }, { status: 400 })
      })
    )
  )
)

const [file = "shop.db"] = process.argv.slice(2)

const main = HttpServer.serve(router).pipe(
  HttpServer.withLogAddress,
  Layer.provide(Sqlite.layer({ file })),
  Layer.provide(
    NodeHttpServer.layer(createServer, { host: "127.0.0.1", port: Number(process.env["PORT"] ?? 3000) })
  )
)

NodeRuntime.runMain(Layer.launch(main))
