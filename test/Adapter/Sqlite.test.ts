import { copyFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import type { Scope } from "effect/Scope"
import Driver from "../../src/Adapter/Sqlite/Driver.js"
import * as Sqlite from "../../src/Adapter/Sqlite.js"
import { Adapter } from "../../src/Adapter.js"
import { fill, folder, isBeingRead } from "../support/Folder.js"
import { childrenOf, eventually, isAlive, killAndWait } from "../support/Process.js"
import { adapterContract, ask, type Subject } from "./AdapterContract.js"

const place = folder()
const file = fill(
  join(place, "contract.db"),
  "create table t (id integer, name text)",
  "insert into t values (1, 'a')"
)

const adapterOf = (path: string, maxConcurrent = 3) =>
  Sqlite.make(new Sqlite.Config({ file: path, maxConcurrent }))

/** The children of this process, which belong to the one adapter of a test. */
const children = () => childrenOf(process.pid)

const killAll = Effect.promise(() => killAndWait(children()))

/** Reads the table, so that it holds the file's lock as long as it runs. */
const runaway =
  "with recursive c(i) as (select id from t union all select i + 1 from c) select count(*) from c"

const subject: Effect.Effect<Subject, never, Scope> = Effect.map(adapterOf(file), (adapter) => ({
  adapter,
  isRunning: Effect.sync(() => isBeingRead(file)),
  cutConnections: killAll
}))

adapterContract(it.scopedLive, {
  name: "SQLite",
  subject,
  unreachable: { reason: "file_not_found", subject: adapterOf(join(place, "missing.db")) },
  statements: {
    one: "select 1",
    noRows: "select id, name from t where 0",
    named: (names) =>
      `select ${names.map((name, index) => `${index + 1} as "${name.replaceAll('"', '""')}"`).join(", ")}`,
    numbers: (n) =>
      `with recursive c(i) as (values (1) union all select i + 1 from c where i < ${n}) select i from c`,
    endless: "with recursive c(i) as (values (1) union all select i + 1 from c) select i from c",
    endlessText:
      "with recursive c(i) as (values (1) union all select i + 1 from c) select hex(zeroblob(500)) as t from c",
    text: (n) => `select substr(replace(hex(zeroblob(${n})), '0', 'x'), 1, ${n}) as t`,
    runaway,
    echo: "select ? as a, ? as b",
    write: "insert into t values (2, 'b')",
    yes: "1",
    bytes: "x'0102ff'"
  },
  values: [
    { what: "null", sql: "select null, 1/0", rows: [[null, null]], columnTypes: [null, null] },
    {
      what: "integers",
      sql: "select 9007199254740991, 9007199254740992, -9223372036854775808",
      rows: [[9_007_199_254_740_991, "9007199254740992", "-9223372036854775808"]]
    },
    { what: "reals", sql: "select 0.1 + 0.2, 1.0, 9e999", rows: [[0.1 + 0.2, 1, "Infinity"]] },
    { what: "text with NUL", sql: "select 'a' || char(0) || 'b'", rows: [["a\u0000b"]] },
    { what: "binary", sql: "select x'deadbeef', x''", rows: [["3q2+7w==", ""]] },
    {
      what: "declared types",
      sql: "select id, name from t",
      columnTypes: ["INTEGER", "TEXT"],
      rows: [[1, "a"]]
    },
    {
      what: "parameters by number, a boolean and null among them",
      sql: "select ?2, ?1, ?3",
      params: [true, null, 1.5],
      rows: [[null, 1, 1.5]]
    }
  ],
  errors: [
    { sql: "select from where", category: "QueryFailed", reason: "syntax", code: "SQLITE_ERROR" },
    { sql: "select * from nosuch", category: "QueryFailed", reason: "unknown_table", code: "SQLITE_ERROR" },
    { sql: "select nosuch from t", category: "QueryFailed", reason: "unknown_column", code: "SQLITE_ERROR" },
    { sql: "select nosuch(1)", category: "QueryFailed", reason: "unknown_function", code: "SQLITE_ERROR" },
    {
      sql: "select 1 limit 'a'",
      category: "QueryFailed",
      reason: "type_mismatch",
      code: "SQLITE_MISMATCH"
    },
    { sql: "select ?", params: [1, 2], category: "QueryFailed", reason: "parameters" },
    { sql: "select ?", category: "QueryFailed", reason: "parameters" },
    { sql: "select :a", params: [1], category: "QueryFailed", reason: "parameters" },
    {
      sql: "select zeroblob(2000000000)",
      category: "QueryFailed",
      reason: "resource_limit",
      code: "SQLITE_TOOBIG"
    },
    // More than the child's heap may hold at once.
    {
      sql: "select group_concat(hex(zeroblob(200000000))) from (select 1 union all select 2)",
      category: "QueryFailed",
      reason: "resource_limit"
    },
    { sql: "select 1; select 2", category: "QueryRejected", reason: "multiple_statements" },
    { sql: "vacuum", category: "QueryRejected", reason: "statement_type" },
    { sql: "select load_extension('x')", category: "QueryRejected", reason: "function_denied" },
    { sql: "", category: "QueryFailed", reason: "syntax" },
    { sql: "-- nothing", category: "QueryFailed", reason: "syntax" },
    { sql: "select 1\u0000; delete from t", category: "QueryRejected", reason: "multiple_statements" },
    { sql: "select 1\u0000", category: "QueryFailed", reason: "syntax" }
  ]
})

describe("children", () => {
  const busy = (adapter: Subject["adapter"]) =>
    Effect.zipLeft(
      Effect.fork(Effect.either(ask(adapter, runaway))),
      Effect.promise(() => eventually("the file is read", () => isBeingRead(file)))
    )

  it.scopedLive("one stands ready beside the one that works", () =>
    Effect.gen(function* () {
      const adapter = yield* adapterOf(file)
      const fiber = yield* busy(adapter)
      yield* Effect.promise(() => eventually("a spare child", () => children().length >= 2))
      yield* Fiber.interrupt(fiber)
    })
  )

  it.scopedLive("an interrupted one is gone, and another takes its place", () =>
    Effect.gen(function* () {
      const adapter = yield* adapterOf(file, 1)
      yield* ask(adapter, "select 1")
      const before = children()
      const fiber = yield* busy(adapter)
      yield* Fiber.interrupt(fiber)
      expect(before.filter(isAlive).length).toBeLessThan(before.length)
      const { rows } = yield* ask(adapter, "select 1")
      expect(rows).toEqual([[1]])
    })
  )

  it.scopedLive("killed while starting, over and over: an answer in the end", () =>
    Effect.gen(function* () {
      const adapter = yield* adapterOf(file)
      for (let time = 0; time < 5; time++) {
        yield* killAll
        yield* Effect.yieldNow()
      }
      const { rows } = yield* Effect.retry(ask(adapter, "select 1"), { times: 5 })
      expect(rows).toEqual([[1]])
    })
  )

  it.scopedLive("an aborted one says that memory ran out", () =>
    Effect.gen(function* () {
      const adapter = yield* adapterOf(file)
      const fiber = yield* Effect.fork(Effect.flip(ask(adapter, runaway)))
      yield* Effect.promise(() => eventually("the file is read", () => isBeingRead(file)))
      for (const pid of children()) process.kill(pid, "SIGABRT")
      const failure = yield* Fiber.join(fiber)
      expect(failure).toMatchObject({ _tag: "QueryFailed", reason: "resource_limit" })
      yield* Effect.retry(ask(adapter, "select 1"), { times: 1 })
    })
  )

  it.scopedLive("none takes part in a signal to the group", () =>
    Effect.gen(function* () {
      const adapter = yield* adapterOf(file)
      yield* ask(adapter, "select 1")
      const [first = 0] = children()
      for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.kill(first, signal)
      const { rows } = yield* ask(adapter, "select 1")
      expect(rows).toEqual([[1]])
      expect(isAlive(first)).toBe(true)
    })
  )

  it.live("none is left when the adapter ends", () =>
    Effect.gen(function* () {
      yield* Effect.scoped(
        Effect.gen(function* () {
          const adapter = yield* adapterOf(file)
          yield* Effect.all([ask(adapter, "select 1"), ask(adapter, "select 2")], { concurrency: 2 })
          yield* Effect.forkScoped(ask(adapter, runaway))
          yield* Effect.promise(() => eventually("the file is read", () => isBeingRead(file)))
          expect(children().length).toBeGreaterThan(1)
        })
      )
      yield* Effect.promise(() => eventually("no child is left", () => children().length === 0))
    })
  )
})

describe("a file that others change", () => {
  for (const mode of ["delete", "wal"])
    it.scopedLive(`a changed table is seen as it is then, its columns and its rows (${mode})`, () =>
      Effect.gen(function* () {
        const path = fill(
          join(place, `changing-${mode}.db`),
          `pragma journal_mode = ${mode}`,
          "create table t (a, b)",
          "insert into t values (1, 2)"
        )
        const other = new Driver(path)
        yield* Effect.addFinalizer(() => Effect.sync(() => other.close()))
        const adapter = yield* adapterOf(path, 1)
        const all = Effect.map(ask(adapter, "select * from t"), ({ columns, rows }) => [columns, rows])
        expect(yield* all).toEqual([["a", "b"], [[1, 2]]])
        other.exec("alter table t add c default 3")
        expect(yield* all).toEqual([["a", "b", "c"], [[1, 2, 3]]])
        other.exec("drop table t; create table t (c, b, a); insert into t values (30, 20, 10)")
        expect(yield* all).toEqual([["c", "b", "a"], [[30, 20, 10]]])
        other.exec("delete from t; alter table t drop b")
        expect(yield* all).toEqual([["c", "a"], []])
        other.exec("drop table t")
        expect(yield* Effect.flip(all)).toMatchObject({ reason: "unknown_table" })
      })
    )

  it.scopedLive("one that is written over, with whatever, is read as what it is then", () =>
    Effect.gen(function* () {
      const path = fill(join(place, "written-over.db"), "create table t (a)", "insert into t values (1)")
      const wide = fill(
        join(place, "utf16.db"),
        "pragma encoding = 'UTF-16'",
        "create table t (a)",
        "insert into t values ('é')"
      )
      const adapter = yield* adapterOf(path, 1)
      const rows = Effect.map(ask(adapter, "select * from t"), (answer) => answer.rows)
      expect(yield* rows).toEqual([[1]])
      copyFileSync(wide, path)
      expect(yield* rows).toEqual([["é"]])
      writeFileSync(path, "This is no database, whatever else it may be.")
      expect(yield* Effect.flip(rows)).toMatchObject({ reason: "file_unreadable" })
      copyFileSync(wide, path)
      expect(yield* rows).toEqual([["é"]])
    })
  )
})

describe("the layer", () => {
  it.live("provides the adapter and ends it with the scope", () =>
    Effect.gen(function* () {
      const rows = yield* Effect.flatMap(Adapter, (adapter) => ask(adapter, "select id from t")).pipe(
        Effect.provide(Sqlite.layer(new Sqlite.Config({ file }))),
        Effect.map((result) => result.rows)
      )
      expect(rows).toEqual([[1]])
      yield* Effect.promise(() => eventually("no child is left", () => children().length === 0))
    })
  )

  it.scopedLive("starts with nothing to read", () =>
    Effect.gen(function* () {
      const context = yield* Layer.build(Sqlite.layer(new Sqlite.Config({ file: join(place, "later.db") })))
      const adapter = yield* Adapter.pipe(Effect.provide(context))
      const failure = yield* Effect.flip(ask(adapter, "select 1"))
      expect(failure).toMatchObject({ _tag: "ConnectionFailed", reason: "file_not_found" })
      fill(join(place, "later.db"), "create table x (a)")
      const { rows } = yield* ask(adapter, "select count(*) from x")
      expect(rows).toEqual([[0]])
    })
  )
})
