import { execFileSync } from "node:child_process"
import { cpSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { SqlError } from "@effect/sql/SqlError"
import { describe, expect, layer, it as unshared } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/TestClock"
import * as TestContext from "effect/TestContext"
import * as Postgres from "../../../src/Adapter/Postgres.js"
import { Adapter, catalogLimits } from "../../../src/Adapter.js"
import { admit } from "../../../src/Policy.js"
import * as Proxy from "./Proxy.js"
import { ask, limits, rowsOf } from "./Query.js"
import * as TestServer from "./TestServer.js"

const explain = (sql: string) =>
  Effect.flatMap(admit("postgres", { sql, params: [] }), (query) =>
    Effect.flatMap(Adapter, (adapter) => adapter.explain(query, limits))
  )

layer(TestServer.layer, { timeout: 120_000, excludeTestServices: true })("service", (it) => {
  const writer = Effect.flatMap(TestServer.Database, ({ writer }) =>
    Postgres.make(TestServer.configOf(writer))
  )

  it.scoped("nothing connects before the first call", () =>
    Effect.gen(function* () {
      const adapter = yield* Postgres.make(TestServer.configOf("postgres://nobody@nosuch.invalid:1/nothing"))
      yield* adapter.client
      expect(adapter.engine).toBe("postgres")
    })
  )

  it.scoped("names and types are as they are, whatever a login's settings quote", () =>
    Effect.gen(function* () {
      const { writer } = yield* TestServer.Database
      const run = (...statements: ReadonlyArray<string>) =>
        Effect.promise(() => TestServer.runAs(writer, statements))
      yield* run("create type mood as enum ('a')", "create table quoted (m mood, n text)")
      yield* Effect.acquireRelease(run("alter role current_user set quote_all_identifiers = on"), () =>
        run("alter role current_user reset quote_all_identifiers")
      )
      const adapter = yield* Postgres.make(TestServer.configOf(writer))
      const { columnTypes, rows } = yield* ask(
        adapter,
        "select m, n, 'quoted'::regclass as r from quoted right join (select 1) s on true"
      )
      expect([columnTypes, rows]).toEqual([["mood", "text", "regclass"], [[null, null, "quoted"]]])
    })
  )

  it.scoped("a row of a table whose columns changed meanwhile is read by those of now", () =>
    Effect.gen(function* () {
      const { writer } = yield* TestServer.Database
      const run = (...statements: ReadonlyArray<string>) =>
        Effect.promise(() => TestServer.runAs(writer, statements))
      yield* run(
        "create table changing (a timestamptz, b text)",
        "insert into changing values ('2024-01-01 00:00+00', '2024-01-01 00:00:00+09')"
      )
      yield* Effect.acquireRelease(run("alter role current_user set timezone = 'Asia/Tokyo'"), () =>
        run("alter role current_user reset timezone")
      )
      const adapter = yield* Postgres.make(TestServer.configOf(writer))
      const row = rowsOf(adapter, "select changing, array[changing] from changing")
      const both = (text: string) => [[text, [text]]]
      expect(yield* row).toEqual(both('("2024-01-01 00:00:00+00","2024-01-01 00:00:00+09")'))
      yield* run("alter table changing add c timestamptz default '2024-06-01 00:00+00', drop a")
      expect(yield* row).toEqual(both('("2024-01-01 00:00:00+09","2024-06-01 00:00:00+00")'))
    })
  )

  it.scoped("anonymous records are the engine's text: what they are made of is not on the wire", () =>
    Effect.gen(function* () {
      const { writer } = yield* TestServer.Database
      const adapter = yield* Postgres.make(
        TestServer.configOf(writer, { options: "-c TimeZone=Asia/Kolkata -c DateStyle=German" })
      )
      const row = rowsOf(adapter, "select row(1, timestamptz '2024-07-01 12:00:00.5+00')")
      expect(yield* row).toEqual([['(1,"2024-07-01 17:30:00.5+05:30")']])
    })
  )

  describe("explain", () => {
    it.scoped("the plan as lines, without running the statement", () =>
      Effect.gen(function* () {
        const { writer } = yield* TestServer.Database
        yield* Effect.promise(() =>
          TestServer.runAs(writer, [
            "create table plan_a (id integer primary key, name text)",
            "create table plan_b (id integer primary key, a_id integer references plan_a)",
            "insert into plan_a select i, 'n' from generate_series(1, 1000) i",
            "insert into plan_b select i, i from generate_series(1, 1000) i",
            "analyze plan_a, plan_b"
          ])
        )
        const adapter = yield* Postgres.make(TestServer.configOf(writer))
        const lines = yield* explain(
          "select a.name, count(*) from plan_a a join plan_b b on b.a_id = a.id where a.id < 10 and 1 / (b.id - b.id) > 0 group by 1 order by 2"
        ).pipe(Effect.provideService(Adapter, adapter))
        const text = lines.join("\n")
        expect(lines[0]).toMatch(/^Sort {2}\(cost=\d+\.\d\d\.\.\d+\.\d\d rows=\d+ width=\d+\)$/)
        expect(text).toContain("Sort Key: (count(*))")
        expect(text).toMatch(/-> .* on plan_b b/)
        expect(text).toMatch(/on plan_a a/)
        expect(text).not.toMatch(/Subplans Removed/)
      })
    )

    it.scoped("parameters need no values", () =>
      Effect.gen(function* () {
        const { version, writer } = yield* TestServer.Database
        const adapter = yield* Postgres.make(TestServer.configOf(writer))
        const plan = (sql: string) => Effect.provideService(explain(sql), Adapter, adapter)
        const sql = "; select relname from pg_class where oid = $1 and relname like $2; -- all"
        if (version < 16) {
          expect(yield* Effect.flip(plan(sql))).toMatchObject({
            reason: "parameters",
            message: expect.stringContaining(`PostgreSQL ${version} `),
            hint: expect.stringContaining("params")
          })
          return
        }
        expect((yield* plan(sql)).join("\n")).toMatch(/\(oid = \$1\)/)
        expect(
          (yield* ask(adapter, `explain (generic_plan, costs off) ${sql.slice(2)}`)).rows.join("\n")
        ).toMatch(/\(oid = \$1\)/)
        // Nothing but such an EXPLAIN goes without.
        for (const other of [
          "select $1::int",
          "explain select $1::int -- generic_plan",
          "select 'explain generic_plan', $1::int"
        ]) {
          expect(yield* Effect.flip(ask(adapter, other))).toMatchObject({ reason: "parameters" })
        }
        expect(
          yield* Effect.flip(plan("select oid from pg_class where oid = $1 and nme = $2"))
        ).toMatchObject({
          engine: { code: "42703", position: 45 }
        })
        expect(yield* ask(adapter, "select count(*) from pg_prepared_statements")).toMatchObject({
          rows: [[0]]
        })
      })
    )

    it.scoped("errors stand at their place in the caller's text", () =>
      Effect.gen(function* () {
        const adapter = yield* writer
        const { engine } = yield* Effect.flip(
          Effect.provideService(explain("select nme from (select 1 as name) t"), Adapter, adapter)
        )
        expect(engine).toEqual({ code: "42703", position: 8 })
        const behind = yield* Effect.flip(
          Effect.provideService(explain("\n; ;select nme from (select 1 as name) t;"), Adapter, adapter)
        )
        expect(behind).toMatchObject({ engine: { code: "42703", position: 12 } })
        const syntax = yield* Effect.flip(
          Effect.provideService(explain("select from where"), Adapter, adapter)
        )
        expect(syntax).toMatchObject({ reason: "syntax", engine: { code: "42601", position: 13 } })
      })
    )
  })

  describe("client", () => {
    it.scoped("statements, parameters, transactions, streams", () =>
      Effect.gen(function* () {
        const adapter = yield* writer
        const sql = yield* adapter.client
        expect(yield* sql`select ${1}::integer as a, ${"x"}::text as b, ${null}::text as c`).toEqual([
          { a: 1, b: "x", c: null }
        ])
        expect(
          yield* sql`select a from (values (1), (2), (3)) t(a) where a in ${sql.in([1, 3])} order by a`
        ).toEqual([{ a: 1 }, { a: 3 }])
        expect(yield* sql.unsafe("select $1::integer[] as a", [[1, 2]])).toEqual([{ a: [1, 2] }])
        expect(yield* sql`select 1 as a, 2 as b`.values).toEqual([[1, 2]])
        const same = yield* sql.withTransaction(
          Effect.all([sql`select pg_backend_pid() as pid`, sql`select pg_backend_pid() as pid`])
        )
        expect(same[0]).toEqual(same[1])
        const streamed = yield* Stream.runCollect(sql`select i from generate_series(1, 1000) i`.stream)
        expect(Chunk.size(streamed)).toBe(1000)
        expect(yield* rowsOf(adapter, "select 1")).toEqual([[1]])
      })
    )

    it.scoped("parameters keep their types", () =>
      Effect.gen(function* () {
        const sql = yield* Effect.flatMap(writer, ({ client }) => client)
        const rows = yield* sql`select 1 as found where ${3} = 3 and ${2.5} > 2.25 and ${"3"} = '3'
          and ${9_007_199_254_740_993n} = 9007199254740993 and coalesce(${null}, 7) = 7 and ${true}
          and ${Uint8Array.of(1, 2, 255)} = '\\x0102ff'::bytea and ${Int8Array.of(-1)} = '\\xff'::bytea
          and ${new Date(0)} = '1970-01-01 00:00Z'::timestamptz`
        expect(rows).toEqual([{ found: 1 }])
        const { cause } = yield* Effect.flip(sql`select ${new Date(Number.NaN)}::timestamptz`)
        expect(cause).toMatchObject({ _tag: "QueryFailed", reason: "type_mismatch" })
      })
    )

    it.scoped("answers whole or fails, in a transaction as well", () =>
      Effect.gen(function* () {
        const adapter = yield* writer
        const sql = yield* adapter.client
        const [large] = yield* sql<{ t: string }>`select repeat('x', 3000000) as t`
        expect(large?.t).toHaveLength(3_000_000)
        for (const endless of [
          sql`select generate_series(1, 9000000000) as i`,
          sql`select repeat('x', 100000) as t, generate_series(1, 9000000000) as i`
        ])
          for (const statement of [endless, sql.withTransaction(endless)]) {
            const { cause } = yield* Effect.flip(statement)
            expect(cause).toMatchObject({ _tag: "QueryFailed", reason: "resource_limit" })
          }
        expect(yield* rowsOf(adapter, "select 1")).toEqual([[1]])
      })
    )

    it.scoped("a statement ends with its time, in the engine and out of it", () =>
      Effect.gen(function* () {
        const sql = yield* Effect.flatMap(writer, ({ client }) => client)
        expect(yield* sql`select current_setting('statement_timeout') as a`).toEqual([{ a: "29990ms" }])
        for (const statement of [
          sql`select pg_sleep(3600)`,
          sql.withTransaction(sql`select pg_sleep(3600)`)
        ]) {
          // An idle session: the clock must not pass while one is opened.
          yield* sql`select 1`
          const fiber = yield* Effect.fork(Effect.flip(statement))
          yield* TestClock.adjust(catalogLimits.timeoutMs)
          expect(yield* Fiber.join(fiber)).toMatchObject({
            cause: { _tag: "QueryFailed", reason: "timeout" }
          })
        }
      }).pipe(Effect.provide(TestContext.TestContext))
    )

    it.scoped("failures carry the adapter's own", () =>
      Effect.gen(function* () {
        const sql = yield* Effect.flatMap(writer, ({ client }) => client)
        const { cause }: SqlError = yield* Effect.flip(sql`select * from nowhere`)
        expect(cause).toMatchObject({ _tag: "QueryFailed", reason: "unknown_table" })
        const write = yield* Effect.flip(sql`create table made (a integer)`)
        expect(write.cause).toMatchObject({ _tag: "QueryRejected", reason: "read_only" })
        const inside = yield* Effect.flip(sql.withTransaction(sql`create table made (a integer)`))
        expect(inside).toMatchObject({ cause: { _tag: "QueryRejected", reason: "read_only" } })
        const adapter = yield* Postgres.make(TestServer.configOf("postgres://nobody@127.0.0.1:1/nothing"))
        const far = yield* Effect.flatMap(adapter.client, (client) => Effect.flip(client`select 1`))
        expect(far.cause).toMatchObject({ _tag: "ConnectionFailed", reason: "refused" })
      })
    )
  })

  it.scoped("the report names what a login may do beyond reading", () =>
    Effect.gen(function* () {
      const { admin, writer, poor } = yield* TestServer.Database
      yield* Effect.promise(() => TestServer.runAs(writer, ["create table reported (a integer)"]))
      const of = (url: string) =>
        Effect.flatMap(Postgres.make(TestServer.configOf(url)), ({ report }) => report)
      const superuser = yield* of(admin)
      expect(superuser.version).toMatch(/^PostgreSQL \d+/)
      expect(superuser.excessPrivileges.join("\n")).toContain("superuser")
      const owner = yield* of(writer)
      expect(owner).toMatchObject({ login: new URL(writer).username, tls: false })
      expect(owner.excessPrivileges.join("\n")).toContain("public.reported")
      const reader = yield* of(poor)
      expect(reader.excessPrivileges).toEqual([])
      expect(reader.leastPrivilege).toEqual([])

      // The statements make a login that has nothing to report.
      const made = `mcpq_made_${TestServer.secret()}`
      const statements = owner.leastPrivilege.map((text) =>
        text.replaceAll("mcp_query_reader", made).replace("'…'", "'pw'")
      )
      yield* Effect.acquireRelease(
        Effect.promise(() => TestServer.runAs(admin, statements)),
        () => Effect.promise(() => TestServer.runAs(admin, [`drop owned by ${made}`, `drop role ${made}`]))
      )
      const least = TestServer.withUrl(admin, { username: made, password: "pw" })
      expect((yield* of(least)).excessPrivileges).toEqual([])
      const adapter = yield* Postgres.make(TestServer.configOf(least))
      expect(yield* rowsOf(adapter, "select count(*) from reported")).toEqual([[0]])
    })
  )

  it.scoped("a pooler that takes no settings of a session", () =>
    Effect.gen(function* () {
      const { writer } = yield* TestServer.Database
      const fields = ["SFATAL", "VFATAL", "C08P01", "Munsupported startup parameter: options"]
      const body = Buffer.from(`${fields.map((field) => `${field}\0`).join("")}\0`)
      const refusal = Buffer.concat([Buffer.from("E\0\0\0\0"), body])
      refusal.writeUInt32BE(body.length + 4, 1)
      const pooler = yield* Proxy.make(Number(new URL(writer).port), 0, (first) =>
        first.includes("options") ? refusal : null
      )
      const url = TestServer.withUrl(writer, { port: String(pooler.port), search: "?sslmode=disable" })
      const adapter = yield* Postgres.make(TestServer.configOf(url))
      for (let i = 0; i < 2; i++) {
        expect(
          yield* rowsOf(
            adapter,
            "select interval '1 day', '\\x00'::bytea, current_setting('transaction_read_only')"
          )
        ).toEqual([["P1D", "AA==", "on"]])
      }
    })
  )

  it.scoped("text that is not valid UTF-8 has a note", () =>
    Effect.gen(function* () {
      const { admin } = yield* TestServer.Database
      const name = `mcpq_ascii_${TestServer.secret()}`
      yield* Effect.acquireRelease(
        Effect.promise(() =>
          TestServer.runAs(admin, [
            `create database ${name} template template0 encoding 'SQL_ASCII' lc_collate 'C' lc_ctype 'C'`
          ])
        ),
        () => Effect.promise(() => TestServer.runAs(admin, [`drop database ${name} with (force)`]))
      )
      const url = TestServer.withUrl(admin, { pathname: `/${name}` })
      yield* Effect.promise(() =>
        TestServer.runAs(url, ["create table bytes as select E'a\\xffb'::text as t"])
      )
      const adapter = yield* Postgres.make(TestServer.configOf(url))
      const { rows, notes } = yield* ask(adapter, "select t from bytes")
      expect(rows).toEqual([["a\ufffdb"]])
      expect(notes).toHaveLength(1)
      expect((yield* ask(adapter, "select 'a'::text")).notes).toEqual([])
    })
  )

  it.scoped("types are learnt once, also those made of others", () =>
    Effect.gen(function* () {
      const { writer } = yield* TestServer.Database
      yield* Effect.promise(() =>
        TestServer.runAs(writer, [
          "create domain moment as timestamptz",
          "create type span as range (subtype = timestamptz)",
          "create type event as (at moment, during span, tags text[], times timestamptz[])",
          "create table tree_node (id integer, children tree_node[])".replace(", children tree_node[]", "")
        ])
      )
      const adapter = yield* Postgres.make(TestServer.configOf(writer))
      const text =
        "select row('2024-01-01 00:00+00', span('2024-01-01 00:00+00', null), array['a b'], array['2024-01-01 00:00+00'::timestamptz])::event as e, array[span('2024-01-01 00:00+00', 'infinity')] as s, now()::moment is null as n"
      for (let i = 0; i < 2; i++) {
        const { rows, columnTypes } = yield* ask(adapter, text)
        expect(columnTypes).toEqual(["event", "span[]", "boolean"])
        expect(rows[0]).toEqual([
          '("2024-01-01 00:00:00+00","[""2024-01-01 00:00:00+00"",)","{""a b""}","{""2024-01-01 00:00:00+00""}")',
          ['["2024-01-01 00:00:00+00",infinity)'],
          false
        ])
      }
    })
  )

  it.scoped("rows that wait for their types stay within bounds", () =>
    Effect.gen(function* () {
      const { writer } = yield* TestServer.Database
      yield* Effect.promise(() => TestServer.runAs(writer, ["create type size as enum ('s', 'm')"]))
      const adapter = yield* Postgres.make(TestServer.configOf(writer))
      const result = yield* ask(
        adapter,
        "select 's'::size, repeat('x', 500000) from generate_series(1, 1000)",
        {
          maxCellBytes: 20
        }
      )
      expect(result.truncatedBy).toBe("max_bytes")
      expect(result.columnTypes).toEqual(["size", "text"])
      expect(result.rows.length).toBeGreaterThan(1)
      expect(result.rows[0]?.[1]).toBe("x".repeat(20))
    })
  )

  it.scoped("what only the engine's parser reads is never executed", () =>
    Effect.gen(function* () {
      const adapter = yield* writer
      const failure = yield* Effect.flip(ask(adapter, `select 1${"+1".repeat(20_000)}`))
      expect(failure.reason).toBeOneOf(["unverifiable", "resource_limit"])
      const wrong = yield* Effect.flip(ask(adapter, "selec 1"))
      expect(wrong).toMatchObject({
        _tag: "QueryFailed",
        reason: "syntax",
        engine: { code: "42601", position: 1 }
      })
    })
  )
})

describe("several hosts", () => {
  unshared.scopedLive(
    "the first that answers, and the kind that is wanted",
    () =>
      Effect.gen(function* () {
        const primary = yield* TestServer.ownServer(["-c", "hot_standby=on"])
        yield* Effect.promise(() => primary.stop("fast"))
        const standby = yield* TestServer.ownServer(["-c", "hot_standby=on"], (folder) => {
          execFileSync("rm", ["-rf", folder])
          cpSync(primary.folder, folder, { recursive: true, preserveTimestamps: true })
          writeFileSync(join(folder, "standby.signal"), "")
          execFileSync("chown", ["-R", "--reference", primary.folder, folder])
          execFileSync("chmod", ["700", folder])
        })
        yield* Effect.promise(() => primary.start())
        const dead = yield* Effect.promise(TestServer.freePort)
        const { username, password } = new URL(primary.url)
        const url = (ports: ReadonlyArray<number>, kind: string) =>
          `postgres://${username}:${password}@${ports.map((port) => `127.0.0.1:${port}`).join()}/postgres?target_session_attrs=${kind}`
        const isStandby = (ports: ReadonlyArray<number>, kind: string) =>
          Effect.scoped(
            Effect.flatMap(
              Postgres.make(TestServer.configOf(url(ports, kind), { connectTimeoutMs: 2000 })),
              (adapter) => Effect.map(rowsOf(adapter, "select pg_is_in_recovery()"), ([row]) => row?.[0])
            )
          )
        expect(yield* isStandby([dead, primary.port], "any")).toBe(false)
        expect(yield* isStandby([dead, standby.port, primary.port], "any")).toBe(true)
        expect(yield* isStandby([standby.port, primary.port], "read-write")).toBe(false)
        expect(yield* isStandby([standby.port, primary.port], "primary")).toBe(false)
        expect(yield* isStandby([primary.port, standby.port], "standby")).toBe(true)
        expect(yield* isStandby([primary.port, standby.port], "read-only")).toBe(true)
        expect(yield* isStandby([primary.port, standby.port], "prefer-standby")).toBe(true)
        expect(yield* isStandby([primary.port, dead], "prefer-standby")).toBe(false)
        expect(yield* Effect.flip(isStandby([primary.port, dead], "standby"))).toMatchObject({
          _tag: "ConnectionFailed",
          reason: "refused"
        })

        // The server in use goes away in between.
        const adapter = yield* Postgres.make(TestServer.configOf(url([primary.port, standby.port], "any")))
        const where = Effect.map(rowsOf(adapter, "select pg_is_in_recovery()"), ([row]) => row?.[0])
        expect(yield* where).toBe(false)
        yield* Effect.promise(() => primary.stop("immediate"))
        expect(yield* Effect.retry(where, { times: 1 })).toBe(true)
        yield* Effect.promise(() => primary.start())
      }),
    120_000
  )

  unshared.scopedLive(
    "a server that stops and starts again, idle and in the middle of calls",
    () =>
      Effect.gen(function* () {
        const server = yield* TestServer.ownServer()
        const adapter = yield* Postgres.make(TestServer.configOf(server.url))
        for (const mode of ["fast", "immediate", "fast", "immediate"] as const) {
          expect(yield* rowsOf(adapter, "select 1")).toEqual([[1]])
          const running = yield* Effect.fork(
            Effect.forEach([1, 2, 3, 4], () => Effect.either(ask(adapter, "select pg_sleep(20)")), {
              concurrency: "unbounded"
            })
          )
          yield* Effect.repeat(
            Effect.delay(
              Effect.promise(() =>
                TestServer.runAs(server.url, [
                  "select 1 from pg_stat_activity where query like 'select pg_sleep%'"
                ])
              ),
              10
            ),
            { until: ([rows]) => rows?.length === 4 }
          )
          yield* Effect.promise(() => server.stop(mode))
          for (const answer of yield* running) {
            expect(answer).toMatchObject({
              _tag: "Left",
              left: { _tag: "ConnectionFailed", reason: "closed" }
            })
          }
          expect(yield* Effect.flip(ask(adapter, "select 1"))).toMatchObject({
            _tag: "ConnectionFailed",
            reason: "refused"
          })
          yield* Effect.promise(() => server.start())
          expect(yield* rowsOf(adapter, "select 1")).toEqual([[1]])
        }
      }),
    120_000
  )
})
