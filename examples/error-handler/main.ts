/**
 * Every way in which a call can fail, handled: a failure that a later version adds does not compile here until it is.
 * `node main.js shop.db`
 */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Match from "effect/Match"
import { QueryError, Sources, Tools } from "mcp-query"
import { Sqlite } from "mcp-query/adapters"

const advice = Match.type<QueryError.QueryError>().pipe(
  Match.tagsExhaustive({
    InvalidInput: ({ issues }) => `correct ${issues.map(({ path }) => path).join(", ")}`,
    ConnectionFailed: ({ reason }) => `the source cannot be reached (${reason})`,
    QueryRejected: ({ reason }) => `the statement may not be run (${reason})`,
    QueryFailed: ({ hint, message }) => (hint === undefined ? message : `${message} ${hint}`)
  })
)

const ask = (args: Tools.QueryArguments) =>
  Effect.flatMap(Tools.Tools, ({ query }) => query(args)).pipe(
    Effect.map(({ rows }) => JSON.stringify(rows)),
    Effect.catchAll((failure) =>
      Effect.succeed(
        `${failure._tag}: ${advice(failure)}${QueryError.isRetryable(failure) ? " (again later)" : ""}`
      )
    ),
    Effect.flatMap((line) => Console.log(line))
  )

const [file = "shop.db"] = process.argv.slice(2)

const sources = Sources.layer([
  { id: "shop", engine: "sqlite", adapter: Sqlite.layer({ file }) },
  { id: "gone", engine: "sqlite", adapter: Sqlite.layer({ file: `${file}.gone` }) }
])

const program = Effect.all([
  ask({ source: "shop", sql: "select 6 * ? as answer", params: [7] }),
  ask({ source: "shop", sql: "" }),
  ask({ source: "shop", sql: "delete from orders" }),
  ask({ source: "shop", sql: "select 1 from nowhere" }),
  ask({ source: "gone", sql: "select 1" })
])

await Effect.runPromise(Effect.provide(program, Tools.layer.pipe(Layer.provide(sources))))
