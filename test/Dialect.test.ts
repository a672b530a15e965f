/**
 * An engine of an application: a real adapter that is none of ours, under rules of its own, beside SQLite. What runs its
 * statements is SQLite, so that the engine is there wherever this test is.
 */
import { join } from "node:path"
import { PassThrough } from "node:stream"
import { describe, expect, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/TestClock"
import { Sqlite } from "../src/adapters.js"
import {
  Adapter,
  CallLog,
  type CatalogReader,
  type Dialect,
  Limits,
  Policy,
  QueryError,
  SchemaResult,
  Sources,
  Tools
} from "../src/index.js"
import * as Server from "../src/server.js"
import { answerOf, errorOf, valueOf } from "./support/Answer.js"
import { toolsOn } from "./support/Application.js"
import { fill, folder } from "./support/Folder.js"
import { lineReader } from "./support/Lines.js"
import { eventually } from "./support/Process.js"

const file = fill(
  join(folder(), "pond.db"),
  "create table fish (id integer primary key, name text not null)",
  "create table frogs (id integer primary key, colour text)",
  "insert into fish (name) values ('pike'), ('carp'), ('tench')"
)

const reject = (reason: QueryError.RejectedReason, message: string) =>
  Effect.fail(new QueryError.QueryRejected({ reason, message }))

/** Nobody disturbs the frogs. */
const inspect: Dialect.Dialect["inspect"] = (sql) =>
  /\bfrogs\b/i.test(sql) ? reject("function_denied", "The frogs are asleep.") : Effect.succeed("execute")

const reader: CatalogReader.Reader = {
  objects: (sql, { likes, limit }) =>
    Effect.map(
      Effect.flatMap(
        sql`select name, count(*) over () as total from sqlite_schema where type = 'table'
          and ${likes.length === 0 ? sql.literal("1") : sql.or(likes.map((like) => sql`name like ${like} escape '\\'`))}
          order by name limit ${sql.literal(String(limit))}`,
        Schema.decodeUnknown(
          Schema.Array(Schema.Struct({ name: Schema.NonEmptyString, total: Schema.Number }))
        )
      ),
      (rows) => ({
        total: rows[0]?.total ?? 0,
        objects: rows.map(({ name }) => ({
          id: name,
          name,
          bare: name,
          qualified: `pond.${name}`,
          kind: "shoal",
          comment: null
        }))
      })
    ),
  columns: (sql, objects) =>
    Effect.map(
      Effect.flatMap(
        sql`select j.value as object, x.name from json_each(${JSON.stringify(objects.map(({ id }) => id))}) j,
          pragma_table_xinfo(j.value) x order by x.cid`,
        Schema.decodeUnknown(Schema.Array(Schema.Struct({ object: Schema.String, name: Schema.String })))
      ),
      (rows) =>
        new Map(
          objects.map(({ id }) => [
            id,
            { columns: rows.filter(({ object }) => object === id).map(({ name }) => ({ name })) }
          ])
        )
    ),
  note: "Fish are counted at dawn."
}

const mute: Dialect.Dialect = {
  name: "mute_pond",
  language: "Mute SQL",
  placeholder: "?1",
  inspect
}

const pond: Dialect.Dialect = {
  ...mute,
  name: "pond",
  language: "Pond SQL",
  catalog: Effect.succeed(reader),
  paging: "ORDER BY … LIMIT m OFFSET n BY HAND",
  parameterHint: "fish are counted from one",
  hasLogins: true
}

const withoutHint = (failure: QueryError.AdapterFailure) =>
  failure._tag === "QueryFailed"
    ? new QueryError.QueryFailed({ reason: failure.reason, message: failure.message })
    : failure

/** An adapter of that engine. What its own rules have admitted must pass those of the engine beneath it, too. */
const adapterOf = (
  engine: Dialect.Dialect,
  hooks: { readonly onStart?: () => void } = {},
  report: Adapter.AdapterService["report"] = Effect.succeed({
    version: "Pond 1",
    tls: null,
    login: "heron",
    excessPrivileges: ["eats fish"],
    leastPrivilege: []
  })
): Layer.Layer<Adapter.Adapter> =>
  Layer.scoped(
    Adapter.Adapter,
    Effect.map(
      Effect.tap(Sqlite.make({ file }), () => hooks.onStart?.()),
      (beneath): Adapter.AdapterService => ({
        engine,
        query: (query, limits) =>
          Effect.flatMap(Policy.admit("sqlite", query), (admitted) => beneath.query(admitted, limits)).pipe(
            Effect.mapError(withoutHint)
          ),
        explain: (query, limits) =>
          Effect.flatMap(Policy.admit("sqlite", query), (admitted) => beneath.explain(admitted, limits)),
        client: beneath.client,
        report
      })
    )
  )

const shop = { id: "shop", engine: "sqlite", adapter: Sqlite.layer({ file }) } as const
const ofPond = { id: "pond", engine: pond, adapter: adapterOf(pond), description: "fish" }
const ofMute = { id: "mute", engine: mute, adapter: adapterOf(mute) }

const statement = (sql: string) => ({ sql, params: [] })

describe("a statement under an application's rules", () => {
  const asked: Array<string> = []
  const counting: Dialect.Dialect = {
    ...mute,
    inspect: (sql) =>
      Effect.zipRight(
        Effect.sync(() => asked.push(sql)),
        inspect(sql)
      )
  }

  it.effect("is admitted as the Dialect says", () =>
    Effect.gen(function* () {
      expect(yield* Policy.admit(mute, statement("select 1"))).toMatchObject({
        sql: "select 1",
        mode: "execute",
        engine: { name: "mute_pond" }
      })
      const careful = { ...mute, inspect: () => Effect.succeed("prepare_only" as const) }
      expect(yield* Policy.admit(careful, statement("select 1"))).toMatchObject({ mode: "prepare_only" })
      expect(yield* Effect.flip(Policy.admit(mute, statement("select * from frogs")))).toMatchObject({
        _tag: "QueryRejected",
        reason: "function_denied",
        message: "The frogs are asleep."
      })
    })
  )

  it.effect("that breaks a rule for all statements is refused before the Dialect is asked", () =>
    Effect.gen(function* () {
      const reasonOf = (sql: string, dialect = counting) =>
        Effect.map(
          Effect.either(Policy.admit(dialect, statement(sql))),
          (verdict) => verdict._tag === "Left" && verdict.left.reason
        )
      for (const sql of ["", " \n\t"]) expect(yield* reasonOf(sql)).toBe("statement_type")
      expect(yield* reasonOf(`select '${"x".repeat(Policy.longestStatement)}'`)).toBe("unverifiable")
      for (const sql of [
        "select 1; select 2",
        "; select 1",
        "select ';x'",
        "select 1; -- done",
        `${";".repeat(9)}a`
      ])
        expect(yield* reasonOf(sql)).toBe("multiple_statements")
      expect(asked).toEqual([])
      for (const sql of ["select 1", "select 1;", "select 1 ; ;\n", ";".repeat(50_000)])
        expect(yield* reasonOf(sql)).toBe(false)
      expect(asked.splice(0)).toHaveLength(4)
      expect(yield* reasonOf("select ';x'", { ...counting, countsStatements: true })).toBe(false)
      expect(asked).toEqual(["select ';x'"])
    })
  )

  it.effect("on which the application does not decide in time is not sent", () =>
    Effect.gen(function* () {
      for (const endless of [Effect.never, Effect.uninterruptible(Effect.never)]) {
        const verdict = yield* Effect.fork(
          Effect.flip(Policy.admit({ ...mute, inspect: () => endless }, statement("select 1")))
        )
        yield* TestClock.adjust("1 second")
        expect(yield* Fiber.join(verdict)).toMatchObject({ _tag: "QueryRejected", reason: "unverifiable" })
      }
    })
  )

  it.effect("over which the application stumbles is not sent", () =>
    Effect.gen(function* () {
      const stumbling: Dialect.Dialect = {
        ...mute,
        inspect: () => {
          throw new RangeError("a fault")
        }
      }
      const exit = yield* Effect.exit(Policy.admit(stumbling, statement("select 1")))
      expect(Exit.isFailure(exit) && Cause.isDie(exit.cause)).toBe(true)
    })
  )

  it.scopedLive("does not run on an adapter of ours", () =>
    Effect.gen(function* () {
      const adapter = yield* Sqlite.make({ file })
      const lax = { ...mute, name: "sqlite", inspect: () => Effect.succeed("execute" as const) }
      const query = yield* Policy.admit(lax, statement("select 1"))
      const limits = { ...Limits.defaultLimits, format: "records" } as const
      for (const run of [adapter.query(query, limits), adapter.explain(query, limits)]) {
        const exit = yield* Effect.exit<unknown, QueryError.AdapterFailure, never>(run)
        expect(String(Exit.isFailure(exit) && Cause.squash(exit.cause))).toContain(
          "admitted for another engine"
        )
      }
    })
  )
})

describe("a source of an application's engine", () => {
  it.effect("whose Dialect does not fit ends in one error with all problems", () =>
    Effect.gen(function* () {
      const wrong = Sources.layer([
        { ...ofPond, id: "a", engine: { ...pond, name: "Duck DB", language: " ", placeholder: "" } },
        { ...ofPond, id: "b", engine: { ...pond, name: "postgres" } },
        { ...ofPond, id: "c", engine: { ...pond, language: "a\nb" } },
        { ...ofPond, id: "d", engine: { ...pond, name: "n".repeat(41) } },
        // As JavaScript may say it.
        { ...ofPond, id: "e", ...JSON.parse('{ "engine": "duckdb" }') },
        { ...ofPond, id: "f", ...JSON.parse('{ "engine": {} }') }
      ])
      const { problems } = yield* Effect.flip(Effect.scoped(Layer.build(wrong)))
      expect(problems.map(({ where }) => where)).toEqual([
        "sources[0].engine.name",
        "sources[0].engine.language",
        "sources[0].engine.placeholder",
        "sources[1].engine.name",
        "sources[2].engine.language",
        "sources[3].engine.name",
        "sources[4].engine",
        "sources[5].engine.name",
        "sources[5].engine.language",
        "sources[5].engine.placeholder"
      ])
      expect(problems[3]).toMatchObject({
        expected: expect.stringContaining("none of sqlite, excel, csv, postgres, mssql"),
        found: 'the string "postgres"'
      })
      expect(problems[6]).toMatchObject({
        expected: "sqlite, excel, csv, postgres, mssql, or a Dialect",
        found: 'the string "duckdb"'
      })
    })
  )

  it.live("whose adapter is for another one runs nothing", () =>
    Effect.gen(function* () {
      const { query } = yield* Tools.Tools
      const faultOf = (source: string) =>
        Effect.map(
          Effect.exit(query({ source, sql: "select 1" })),
          (exit) => Exit.isFailure(exit) && String(Cause.squash(exit.cause))
        )
      expect(yield* faultOf("other")).toContain(
        "The adapter of other is for pond; the source says mute_pond."
      )
      expect(yield* faultOf("twin")).toContain("The adapter of twin has another Dialect of the name pond")
      expect(yield* faultOf("ours")).toContain("The adapter of ours is for sqlite; the source says pond.")
    }).pipe(
      Effect.provide(
        toolsOn(
          { ...ofPond, id: "other", engine: mute },
          { ...ofPond, id: "twin", engine: { ...pond } },
          { ...shop, id: "ours", engine: pond }
        )
      )
    )
  )

  it.live("fails as the port says, and with a reader's fault as a defect", () =>
    Effect.gen(function* () {
      const { schema } = yield* Tools.Tools
      expect(yield* Effect.flip(schema({ source: "closed" }))).toMatchObject({ _tag: "ConnectionFailed" })
      const exit = yield* Effect.exit(schema({ source: "odd" }))
      expect(Exit.isFailure(exit) && Cause.isDie(exit.cause)).toBe(true)
      const { objects } = {
        objects: [],
        ...(yield* schema({ source: "brief", name: "fish", detail: "full" }))
      }
      expect(objects).toEqual([{ name: "fish", kind: "shoal", columns: [{ name: "id" }, { name: "name" }] }])
    }).pipe(
      Effect.provide(
        toolsOn(
          ...[
            {
              id: "closed",
              objects: () =>
                Effect.fail(
                  new QueryError.ConnectionFailed({
                    reason: "refused",
                    message: QueryError.connectionMessage.refused
                  })
                )
            },
            {
              id: "odd",
              objects: () => Effect.flatMap(Schema.decodeUnknown(Schema.Never)(1), () => Effect.never)
            },
            { id: "brief" }
          ].map(({ id, ...odd }) => {
            const engine = { ...pond, catalog: Effect.succeed({ ...reader, ...odd }) }
            return { id, engine, adapter: adapterOf(engine) }
          })
        )
      )
    )
  )
})

describe("a statement to explain", () => {
  const nesting = { ...pond, nestedComments: true }
  const sql = "/* /* */ explain */ select 1"

  it.live("begins behind its comments, which nest where the Dialect says so", () =>
    Effect.gen(function* () {
      const { explain } = yield* Tools.Tools
      expect(yield* Effect.flip(explain({ source: "pond", sql }))).toMatchObject({ reason: "statement_type" })
      // What runs it is SQLite, whose comments do not nest.
      expect(yield* Effect.flip(explain({ source: "nesting", sql }))).toMatchObject({ reason: "syntax" })
    }).pipe(Effect.provide(toolsOn(ofPond, { id: "nesting", engine: nesting, adapter: adapterOf(nesting) })))
  )
})

/** A client of a server with these sources, over its streams. */
const served = (...options: ReadonlyArray<Sources.SourceOptions>) =>
  Effect.gen(function* () {
    const input = new PassThrough()
    const output = new PassThrough()
    const messages: Array<{ readonly id?: number; readonly result?: Record<string, unknown> }> = []
    output.on(
      "data",
      lineReader((line) => messages.push(JSON.parse(line)))
    )
    const events: Array<Record<string, unknown>> = []
    const log = Layer.succeed(CallLog.CallLog, {
      call: () => Effect.void,
      event: (_, event, fields) =>
        Effect.sync(() => {
          // Everything in a line is JSON.
          expect(JSON.parse(JSON.stringify(fields ?? {}))).toEqual(fields ?? {})
          if (event.startsWith("source_")) events.push({ event, ...fields })
        })
    })
    yield* Server.serve({ input, output }).pipe(
      Effect.provide(Layer.provideMerge(Sources.layer(options), log)),
      Effect.forkScoped
    )
    const send = (message: object) => input.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
    let lastId = 0
    const request = (method: string, params: object = {}) =>
      Effect.promise(async () => {
        const id = ++lastId
        send({ id, method, params })
        const { result } = await eventually(`an answer to ${method}`, () =>
          messages.find((message) => message.id === id)
        )
        return result ?? {}
      })
    yield* request("initialize", {
      protocolVersion: "2025-06-18",
      capabilities: {},
      clientInfo: { name: "test", version: "0" }
    })
    send({ method: "notifications/initialized" })
    const call = (name: string, args: object) =>
      Effect.map(request("tools/call", { name, arguments: args }), (result) => answerOf(result))
    return { request, call, events }
  })

describe("an application's engine beside SQLite, for a client", () => {
  it.scopedLive("is told of in the list of tools", () =>
    Effect.gen(function* () {
      const { request } = yield* served(shop, ofPond)
      const listed = JSON.stringify(yield* request("tools/list"))
      expect(listed).toContain("Dialect and placeholders for params: SQLite (?), Pond SQL (?1).")
      expect(listed).toContain("Sources: shop (sqlite), pond (pond: fish).")
      expect(listed).toContain("Call schema first")
      expect(JSON.stringify(yield* (yield* served(ofMute)).request("tools/list"))).not.toContain(
        "Call schema first"
      )
      const long = { name: "n".repeat(40), language: "l".repeat(40), placeholder: "p".repeat(20) }
      const longest = yield* served({ ...ofPond, engine: { ...pond, ...long }, description: "d".repeat(999) })
      expect(Buffer.byteLength(JSON.stringify(yield* longest.request("tools/list")))).toBeLessThan(4096)
    })
  )

  it.scopedLive("is queried and explained under its own rules, and SQLite under ours", () =>
    Effect.gen(function* () {
      const { call, events } = yield* served(shop, ofPond)
      const on = (source: string, sql: string, more: object = {}) => call("query", { source, sql, ...more })
      expect(
        valueOf(
          yield* on("pond", "select name from fish where id > ?1 order by id", { params: [1], maxRows: 1 })
        )
      ).toMatchObject({
        rows: [{ name: "carp" }],
        truncatedBy: "max_rows",
        notes: [expect.stringContaining("page with ORDER BY … LIMIT m OFFSET n BY HAND.")]
      })
      expect(errorOf(yield* on("pond", "select * from frogs"))).toMatchObject({
        category: "query_rejected",
        reason: "function_denied",
        message: "The frogs are asleep.",
        source: "pond"
      })
      expect(valueOf(yield* on("shop", "select * from frogs"))).toMatchObject({ rowCount: 0 })
      expect(errorOf(yield* on("pond", "delete from fish"))).toMatchObject({
        category: "query_rejected",
        reason: "read_only"
      })
      expect(errorOf(yield* on("pond", "select ?1"))).toMatchObject({
        reason: "parameters",
        hint: "Write ?1, ?2, … and give one value for each in params; fish are counted from one."
      })
      expect(yield* call("explain", { source: "pond", sql: "select * from fish" })).toMatchObject({
        value: { plan: ["SCAN fish"] }
      })
      expect(errorOf(yield* call("explain", { source: "pond", sql: "select * from frogs" }))).toMatchObject({
        reason: "function_denied"
      })
      // The report is asked for beside the calls.
      const connected = yield* Effect.promise(() =>
        eventually("the log tells of the login", () =>
          events.find((line) => line["event"] === "source_connected" && line["source"] === "pond")
        )
      )
      expect(connected).toMatchObject({ engine: "pond", login: "heron", excessPrivileges: ["eats fish"] })
    })
  )

  it.scopedLive("tells its schema by its own reader, to hints as well", () =>
    Effect.gen(function* () {
      const { call, request } = yield* served(shop, ofPond)
      const list = valueOf(yield* call("schema", {}))
      expect(list).toEqual({
        sources: [
          { id: "shop", engine: "sqlite" },
          { id: "pond", engine: "pond", description: "fish" }
        ],
        truncated: false
      })
      expect(Schema.is(SchemaResult.SchemaAnswer)(list)).toBe(true)
      const schema = (args: object = {}) => call("schema", { source: "pond", ...args })
      expect(valueOf(yield* schema())).toEqual({
        names: { shoal: ["fish", "frogs"] },
        truncated: false,
        notes: ["Fish are counted at dawn."]
      })
      expect(valueOf(yield* schema({ name: "fish", detail: "full" }))).toEqual({
        objects: [{ name: "fish", kind: "shoal", columns: [{ name: "id" }, { name: "name" }] }],
        truncated: false
      })
      expect(errorOf(yield* schema({ name: "fsh" }))).toMatchObject({
        reason: "unknown_table",
        hint: "Closest names: fish."
      })
      const hintOf = (sql: string) =>
        Effect.map(call("query", { source: "pond", sql }), (answer) => errorOf(answer).hint)
      expect(yield* hintOf("select * from fisch")).toBe("Closest names: fish.")
      expect(yield* hintOf("select nme from fish")).toContain("Closest columns: name.")
      const { resources } = yield* request("resources/list")
      expect(resources).toMatchObject([{ name: "shop/schema" }, { name: "pond/schema" }])
      expect(
        JSON.stringify(yield* request("resources/read", { uri: "mcp-query://pond/schema/fish" }))
      ).toContain("shoal")
    })
  )

  it.scopedLive("without a reader says so, and is not touched for that", () =>
    Effect.gen(function* () {
      let started = 0
      const { call, events, request } = yield* served(shop, {
        ...ofMute,
        adapter: adapterOf(mute, { onStart: () => started++ })
      })
      for (const args of [{}, { name: "fish" }, { detail: "full" }])
        expect(errorOf(yield* call("schema", { source: "mute", ...args }))).toMatchObject({
          category: "query_failed",
          reason: "engine_error",
          message: "This source does not tell its schema.",
          hint: "Read the engine's own catalog with query, in Mute SQL.",
          source: "mute"
        })
      expect(started).toBe(0)
      expect(events).toEqual([])
      const hintOf = (sql: string) =>
        Effect.map(call("query", { source: "mute", sql }), (answer) => errorOf(answer).hint)
      expect(yield* hintOf("select * from fisch")).toBe("Look the name up in the engine's own catalog.")
      expect(yield* hintOf("select nme from fish")).toBe(
        "Look the table's columns up in the engine's own catalog."
      )
      expect(yield* hintOf("select ?1")).toBe("Write ?1, ?2, … and give one value for each in params.")
      expect(events).toEqual([{ event: "source_connected", source: "mute", engine: "mute_pond" }])
      expect((yield* request("resources/list"))["resources"]).toMatchObject([{ name: "shop/schema" }])
    })
  )
})
