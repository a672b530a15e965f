/** What an application uses: sources of its own, the tools without MCP, the server on its own streams, spans. */
import { join } from "node:path"
import { PassThrough } from "node:stream"
import { describe, expect, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as Tracer from "effect/Tracer"
import { Sqlite, Telemetry } from "../src/adapters.js"
import { Adapter, Policy, QueryError, Rows, Sources, Tools } from "../src/index.js"
import * as Server from "../src/server.js"
import { quiet, toolsOn } from "./support/Application.js"
import { fill, folder } from "./support/Folder.js"
import { lineReader } from "./support/Lines.js"
import { childrenOf, eventually, isAlive, isBusy } from "./support/Process.js"

const file = fill(
  join(folder(), "shop.db"),
  "create table t (a integer primary key)",
  "insert into t values (1), (2)"
)

const shop = { id: "shop", engine: "sqlite", adapter: Sqlite.layer({ file }) } as const

const endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"

/** An adapter of an application, as small as can be: it answers each statement with its text. */
const echo = (engine: Adapter.Engine, hooks: { readonly onEnd?: () => void } = {}) => {
  const none = new QueryError.QueryRejected({ reason: "statement_type", message: "There is none." })
  return Layer.scoped(
    Adapter.Adapter,
    Effect.acquireRelease(
      Effect.succeed<Adapter.AdapterService>({
        engine,
        query: ({ sql }, limits) =>
          Effect.sync(() => {
            const builder = new Rows.RowBuilder([{ name: "sql", type: null }], limits)
            builder.add([sql])
            return builder.finish()
          }),
        explain: ({ sql }) => Effect.succeed([sql]),
        client: Effect.fail(none),
        report: Effect.fail(none)
      }),
      () => Effect.sync(() => hooks.onEnd?.())
    )
  )
}

describe("sources of an application", () => {
  it.effect("whose description is wrong end in one error with all problems", () =>
    Effect.gen(function* () {
      const wrong = Sources.layer([
        { ...shop, id: "Shop" },
        { ...shop, limits: { maxRows: 0, timeoutMs: 1.5 } },
        shop
      ])
      const { problems } = yield* Effect.flip(Effect.scoped(Layer.build(wrong)))
      expect(problems.map(({ where }) => where)).toEqual([
        "sources[0].id",
        "sources[1].limits.maxRows",
        "sources[1].limits.timeoutMs",
        "sources"
      ])
      const { message } = yield* Effect.flip(Effect.scoped(Layer.build(Sources.layer([]))))
      expect(message).toContain("expected at least one source; found none")
    })
  )

  it.live("are built by the first call, once, and end with their Layer", () =>
    Effect.gen(function* () {
      const before = childrenOf(process.pid)
      let ended = 0
      const scope = yield* Scope.make()
      const own = echo("sqlite", { onEnd: () => ended++ })
      const context = yield* Layer.buildWithScope(
        toolsOn(shop, { id: "own", engine: "sqlite", adapter: own }),
        scope
      )
      const { query } = Context.get(context, Tools.Tools)
      expect(childrenOf(process.pid)).toEqual(before)
      const answers = yield* Effect.all(
        [1, 2, 3].flatMap((n) => [
          query({ source: "shop", sql: `select ${n} as n` }),
          query({ source: "own", sql: `select ${n}` })
        ]),
        { concurrency: "unbounded" }
      )
      expect(answers.map(({ rows }) => rows)).toEqual(
        [1, 2, 3].flatMap((n) => [[{ n }], [{ sql: `select ${n}` }]])
      )
      expect(ended).toBe(0)
      yield* Scope.close(scope, Exit.void)
      expect(ended).toBe(1)
      yield* Effect.promise(() =>
        eventually("the children end", () => childrenOf(process.pid).length === before.length)
      )
    })
  )

  it.live("whose adapter is for another engine run nothing", () =>
    Effect.gen(function* () {
      const { query } = yield* Tools.Tools
      const exit = yield* Effect.exit(query({ sql: "select 1" }))
      const defect = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
      expect(String(defect)).toContain("The adapter of own is for postgres; the source says sqlite.")
    }).pipe(Effect.provide(toolsOn({ id: "own", engine: "sqlite", adapter: echo("postgres") })))
  )
})

describe("the tools without MCP", () => {
  it.live("answer and fail as they do for a client", () =>
    Effect.gen(function* () {
      const { explain, query, schema } = yield* Tools.Tools
      expect(
        yield* query({ sql: "select a from t where a > ?", params: [1], format: "columnar" })
      ).toMatchObject({
        columns: ["a"],
        rows: [[2]],
        truncated: false
      })
      expect(yield* schema({ name: "t" })).toMatchObject({ objects: [{ name: "t", primaryKey: ["a"] }] })
      expect(yield* explain({ sql: "select a from t" })).toEqual({ plan: ["SCAN t"] })

      expect(yield* Effect.flip(query({ sql: "", maxRows: 0 }))).toMatchObject({
        _tag: "InvalidInput",
        issues: [{ path: "sql" }, { path: "maxRows" }]
      })
      expect(yield* Effect.flip(query({ sql: "delete from t" }))).toMatchObject({ _tag: "QueryRejected" })
      expect(yield* Effect.flip(query({ sql: "select nme from t" }))).toMatchObject({ _tag: "QueryFailed" })
      expect(yield* Effect.flip(query({ sql: endless, timeoutMs: 300 }))).toMatchObject({
        _tag: "QueryFailed",
        reason: "timeout"
      })
    }).pipe(Effect.provide(toolsOn(shop)))
  )
})

/** A client that writes to a server's input and hears its output. */
const streams = () => {
  const input = new PassThrough()
  const output = new PassThrough()
  const messages: Array<{ readonly id?: number; readonly result?: Record<string, unknown> }> = []
  output.on(
    "data",
    lineReader((line) => messages.push(JSON.parse(line)))
  )
  const send = (message: object) => input.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
  const answer = (id: number) =>
    Effect.promise(() =>
      eventually(`an answer to ${id}`, () => messages.find((message) => message.id === id))
    )
  const begin = (id: number, args: object) =>
    send({ id, method: "tools/call", params: { name: "query", arguments: args } })
  send({
    id: 0,
    method: "initialize",
    params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "0" } }
  })
  send({ method: "notifications/initialized" })
  return { input, output, messages, send, answer, begin }
}

const sources = Sources.layer([shop])

describe("the server on an application's streams", () => {
  it.live("serves until its input ends, and answers what is in flight first", () =>
    Effect.gen(function* () {
      const { answer, begin, input, messages, output } = streams()
      const served = yield* Effect.fork(Server.serve({ input, output, structuredContent: false }))
      begin(1, { sql: "select a from t" })
      input.end()
      yield* Fiber.join(served)
      expect((yield* answer(1)).result).toMatchObject({
        content: [{ type: "text", text: expect.stringContaining('"rows":[{"a":1},{"a":2}]') }]
      })
      expect(messages.map(({ id }) => id)).toEqual([0, 1])
    }).pipe(Effect.provide(sources), Effect.provide(quiet))
  )

  it.live("gives them back without a listener of its own, however soon it is stopped", () =>
    Effect.gen(function* () {
      const { answer, begin, input, output } = streams()
      const events = ["data", "end", "close", "error"] as const
      const listeners = () =>
        [input, output].flatMap((each) => events.map((event) => each.listenerCount(event)))
      const before = listeners()
      for (let turns = 0; turns < 12; turns++) {
        const served = yield* Effect.fork(Server.serve({ input, output }))
        for (let turn = 0; turn < turns; turn++) yield* Effect.promise(() => Promise.resolve())
        yield* Fiber.interrupt(served)
        expect(listeners()).toEqual(before)
      }
      const served = yield* Effect.fork(Server.serve({ input, output }))
      input.resume()
      begin(1, { sql: "select a from t" })
      yield* answer(1)
      yield* Fiber.interrupt(served)
      expect(listeners()).toEqual(before)
    }).pipe(Effect.provide(sources), Effect.provide(quiet))
  )

  it.live("as a Layer ends with it: a call that is done soon is still answered", () =>
    Effect.gen(function* () {
      const { answer, begin, input, output } = streams()
      const scope = yield* Scope.make()
      yield* Layer.buildWithScope(Layer.provide(Server.layer({ input, output }), sources), scope)
      begin(1, { sql: "select a from t" })
      yield* answer(1)
      begin(2, { sql: endless, timeoutMs: 500 })
      yield* Scope.close(scope, Exit.void)
      expect((yield* answer(2)).result).toMatchObject({ isError: true })
      // Nobody listens any more.
      begin(3, { sql: "select 1" })
      expect(input.readableFlowing).toBe(false)
    }).pipe(Effect.provide(quiet))
  )

  it.live("ends at once when its client takes no answers, and stops what runs for it", () =>
    Effect.gen(function* () {
      const { begin, input, output } = streams()
      const scope = yield* Scope.make()
      const context = yield* Layer.buildWithScope(
        Layer.provide(Server.layer({ input, output }), sources),
        scope
      )
      begin(1, { sql: endless, timeoutMs: 30_000 })
      const [child] = yield* Effect.promise(() =>
        eventually("a child works", () => childrenOf(process.pid).filter(isBusy))
      )
      output.destroy()
      yield* Context.get(context, Server.McpServer).ended
      yield* Effect.promise(() => eventually("the statement ends", () => !isAlive(child ?? 0)))
      yield* Scope.close(scope, Exit.void)
    }).pipe(Effect.provide(quiet))
  )

  it.live("shows no secret, in no answer", () =>
    Effect.gen(function* () {
      const secret = `s${Math.random().toString(36).slice(2)}`
      const { answer, begin, input, output } = streams()
      yield* Effect.fork(Server.serve({ input, output, secrets: [Redacted.make(secret)] }))
      begin(1, { sql: `select 1 from "${secret}"` })
      const { result } = yield* answer(1)
      expect(JSON.stringify(result)).toContain("unknown_table")
      expect(JSON.stringify(result)).not.toContain(secret)
      input.end()
    }).pipe(Effect.provide(sources), Effect.provide(quiet))
  )
})

describe("spans", () => {
  /** Runs `effect` and gives the spans that it left, by name. */
  const recorded = <A, E>(effect: Effect.Effect<A, E>) =>
    Effect.gen(function* () {
      const ended = new Map<string, Tracer.Span>()
      const inner = yield* Effect.tracer
      const tracer = Tracer.make({
        span: (name, ...rest) => {
          const span = inner.span(name, ...rest)
          ended.set(name, span)
          return span
        },
        context: (run) => run()
      })
      const exit = yield* Effect.exit(Effect.withTracer(effect, tracer))
      return { exit, attributesOf: (name: string) => Object.fromEntries(ended.get(name)?.attributes ?? []) }
    })

  const limits = {
    maxRows: 10,
    maxBytes: 1000,
    maxCellBytes: 100,
    timeoutMs: 10_000,
    format: "columnar"
  } as const

  const ask = (sql: string, params: ReadonlyArray<Adapter.Parameter> = [], layer = Sqlite.layer({ file })) =>
    Effect.gen(function* () {
      const adapter = yield* Adapter.Adapter
      return yield* adapter.query(yield* Policy.admit(adapter.engine, { sql, params }), limits)
    }).pipe(Effect.provide(layer))

  it.live("tell the statement only where its values are parameters, unless asked to", () =>
    Effect.gen(function* () {
      const literal = "select a from t where a = 1"
      const parameterized = "select a from t where a = ?"
      const textOf = (effect: Effect.Effect<unknown, unknown>) =>
        Effect.map(recorded(effect), ({ attributesOf }) => attributesOf("shop.db")["db.query.text"])
      expect(yield* textOf(ask(literal))).toBeUndefined()
      expect(yield* textOf(ask(parameterized, [1]))).toBe(parameterized)
      const always = Effect.provideService(Telemetry.QueryText, "always" as const)
      const never = Effect.provideService(Telemetry.QueryText, "never" as const)
      expect(yield* textOf(ask(literal).pipe(always))).toBe(literal)
      expect(yield* textOf(ask(parameterized, [1]).pipe(never))).toBeUndefined()
    })
  )

  it.live("say how many rows came, and how it failed", () =>
    Effect.gen(function* () {
      const ran = yield* recorded(ask("select a from t"))
      expect(ran.attributesOf("shop.db")).toEqual({
        "db.system.name": "sqlite",
        "db.namespace": "shop.db",
        "db.response.returned_rows": 2
      })
      const failed = yield* recorded(ask("select nme from t"))
      expect(failed.attributesOf("shop.db")).toEqual({
        "db.system.name": "sqlite",
        "db.namespace": "shop.db",
        "db.response.status_code": "SQLITE_ERROR",
        "error.type": "SQLITE_ERROR"
      })
      const gone = yield* recorded(ask("select 1", [], Sqlite.layer({ file: `${file}.gone` })))
      expect(gone.attributesOf("shop.db.gone")).toMatchObject({ "error.type": expect.stringMatching(/./) })
    })
  )

  it.live("of a defect say its class, of an interruption nothing", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const service = (query: Adapter.AdapterService["query"]) =>
        Layer.map(echo("sqlite"), (context) =>
          Context.add(
            context,
            Adapter.Adapter,
            Telemetry.traced(
              { system: "other_sql", address: "localhost", port: 7 },
              {
                ...Context.get(context, Adapter.Adapter),
                query
              }
            )
          )
        )
      const died = yield* recorded(
        ask(
          "select 1",
          [],
          service(() => Effect.die(new RangeError("a fault")))
        )
      )
      expect(died.attributesOf("other_sql")).toEqual({
        "db.system.name": "other_sql",
        "server.address": "localhost",
        "server.port": 7,
        "error.type": "RangeError"
      })
      const hanging = service(() => Effect.zipRight(Deferred.succeed(begun, undefined), Effect.never))
      const stopped = yield* recorded(
        Effect.raceFirst(
          ask("select 1", [], hanging),
          Effect.fail("enough").pipe(Effect.delay(0), (late) => Effect.zipRight(Deferred.await(begun), late))
        )
      )
      expect(stopped.attributesOf("other_sql")).not.toHaveProperty("error.type")
    })
  )
})
