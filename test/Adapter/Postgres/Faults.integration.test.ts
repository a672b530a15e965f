import { createServer } from "node:net"
import { expect, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import pg from "pg"
import * as Postgres from "../../../src/Adapter/Postgres.js"
import type { AdapterFailure } from "../../../src/QueryError.js"
import * as Proxy from "./Proxy.js"
import { ask, rowsOf } from "./Query.js"
import * as TestServer from "./TestServer.js"

const endless = "select count(*) from generate_series(1, 1000000000000)"

/** Sessions of the login that run something, other than the one that asks. */
const busy = (admin: string, user: string) =>
  Effect.promise(async () => {
    const [rows = []] = await TestServer.runAs(admin, [
      `select pid from pg_stat_activity where usename = '${user}' and state = 'active'`
    ])
    return rows.map(([pid]) => Number(pid))
  })

const until = <A>(effect: Effect.Effect<A>, holds: (value: A) => boolean) =>
  Effect.repeat(Effect.delay(effect, 10), { until: holds })

const listening = (onSocket: (socket: import("node:net").Socket) => void) =>
  Effect.acquireRelease(
    Effect.promise(
      () =>
        new Promise<{ readonly port: number; readonly close: () => void }>((resolve) => {
          const sockets = new Set<import("node:net").Socket>()
          const listener = createServer((socket) => {
            sockets.add(socket)
            socket.on("error", () => {}).resume()
            onSocket(socket)
          })
          listener.listen(0, "127.0.0.1", () => {
            const address = listener.address()
            resolve({
              port: address !== null && typeof address === "object" ? address.port : 0,
              close: () => {
                for (const socket of sockets) socket.destroy()
                listener.close()
              }
            })
          })
        })
    ),
    ({ close }) => Effect.sync(close)
  )

layer(TestServer.layer, { timeout: 120_000, excludeTestServices: true })("faults", (it) => {
  it.scoped("interruption stops the statement in the engine, also with a single session", () =>
    Effect.gen(function* () {
      const { admin, writer } = yield* TestServer.Database
      const user = new URL(writer).username
      const adapter = yield* Postgres.make(TestServer.configOf(writer, { maxConnections: 1 }))
      for (let i = 0; i < 3; i++) {
        const fiber = yield* Effect.fork(ask(adapter, endless))
        yield* until(busy(admin, user), (pids) => pids.length === 1)
        const exit = yield* Fiber.interrupt(fiber)
        expect(Exit.isInterrupted(exit)).toBe(true)
        yield* until(busy(admin, user), (pids) => pids.length === 0)
        expect(yield* rowsOf(adapter, "select 1")).toEqual([[1]])
      }
    })
  )

  it.scoped("interruption while a session is being opened leaves nothing behind", () =>
    Effect.gen(function* () {
      const { writer } = yield* TestServer.Database
      let accepted = 0
      let closed = 0
      const silent = yield* listening((socket) => {
        accepted++
        socket.on("close", () => closed++)
      })
      const config = TestServer.configOf(TestServer.withUrl(writer, { port: String(silent.port) }), {
        maxConnections: 1
      })
      const adapter = yield* Postgres.make(config)
      const fiber = yield* Effect.fork(ask(adapter, "select 1"))
      yield* until(
        Effect.sync(() => accepted),
        (n) => n === 1
      )
      yield* Fiber.interrupt(fiber)
      yield* until(
        Effect.sync(() => closed),
        (n) => n === 1
      )
      // The place in the pool is free again: the next call reaches the server.
      const next = yield* Effect.fork(ask(adapter, "select 1"))
      yield* until(
        Effect.sync(() => accepted),
        (n) => n === 2
      )
      yield* Fiber.interrupt(next)
    })
  )

  it.scoped("the engine's own limit answers as a timeout and keeps the session", () =>
    Effect.gen(function* () {
      const { writer } = yield* TestServer.Database
      const adapter = yield* Postgres.make(TestServer.configOf(writer, { maxConnections: 1 }))
      const before = yield* rowsOf(adapter, "select pg_backend_pid()")
      const failure = yield* Effect.flip(ask(adapter, endless, { timeoutMs: 200 }))
      expect(failure).toMatchObject({ _tag: "QueryFailed", reason: "timeout", engine: { code: "57014" } })
      expect(yield* rowsOf(adapter, "select pg_backend_pid()")).toEqual(before)
    })
  )

  it.scoped("a statement that somebody else cancels is no timeout", () =>
    Effect.gen(function* () {
      const { admin, writer } = yield* TestServer.Database
      const user = new URL(writer).username
      const adapter = yield* Postgres.make(TestServer.configOf(writer))
      const fiber = yield* Effect.fork(Effect.flip(ask(adapter, endless)))
      const [pid] = yield* until(busy(admin, user), (pids) => pids.length === 1)
      yield* Effect.promise(() => TestServer.runAs(admin, [`select pg_cancel_backend(${pid})`]))
      expect(yield* Fiber.join(fiber)).toMatchObject({ _tag: "QueryFailed", reason: "engine_error" })
    })
  )

  it.scoped("a session that is killed while idle is replaced unseen", () =>
    Effect.gen(function* () {
      const { admin, writer } = yield* TestServer.Database
      const adapter = yield* Postgres.make(TestServer.configOf(writer))
      for (let i = 0; i < 5; i++) {
        const [[pid] = []] = yield* rowsOf(adapter, "select pg_backend_pid()")
        yield* Effect.promise(() => TestServer.runAs(admin, [`select pg_terminate_backend(${pid}, 5000)`]))
        // The driver may not have seen it yet; then the failure says that it may be tried again.
        const again = yield* Effect.retry(ask(adapter, "select 1"), {
          times: 1,
          while: (failure) => failure._tag === "ConnectionFailed" && failure.beforeFirstRow === true
        })
        expect(again.rows).toEqual([[1]])
      }
    })
  )

  it.scoped("a session that is killed while it works is a lost connection", () =>
    Effect.gen(function* () {
      const { admin, writer } = yield* TestServer.Database
      const user = new URL(writer).username
      const adapter = yield* Postgres.make(TestServer.configOf(writer))
      const fiber = yield* Effect.fork(Effect.flip(ask(adapter, endless)))
      const [pid] = yield* until(busy(admin, user), (pids) => pids.length === 1)
      yield* Effect.promise(() => TestServer.runAs(admin, [`select pg_terminate_backend(${pid})`]))
      expect(yield* Fiber.join(fiber)).toMatchObject({
        _tag: "ConnectionFailed",
        reason: "closed",
        beforeFirstRow: true,
        engine: { code: "57P01" }
      })
      expect(yield* rowsOf(adapter, "select 1")).toEqual([[1]])
    })
  )

  it.scoped("a connection that is lost among the rows is not to be tried again", () =>
    Effect.gen(function* () {
      const { writer } = yield* TestServer.Database
      const proxy = yield* Proxy.make(Number(new URL(writer).port))
      const adapter = yield* Postgres.make(
        TestServer.configOf(TestServer.withUrl(writer, { port: String(proxy.port) }))
      )
      expect(yield* rowsOf(adapter, "select 1")).toEqual([[1]])
      proxy.cutAfter(20_000)
      const failure = yield* Effect.flip(
        ask(adapter, "select x, pg_sleep(0.01)::text from generate_series(1, 1000) i, repeat('x', 1000) x")
      )
      expect(failure).toMatchObject({ _tag: "ConnectionFailed", reason: "closed", beforeFirstRow: false })
      proxy.cutAfter(Number.POSITIVE_INFINITY)
      expect(yield* rowsOf(adapter, "select 1")).toEqual([[1]])
    })
  )

  it.scoped("a value beyond what is read is refused, and the next call served", () =>
    Effect.gen(function* () {
      const { writer } = yield* TestServer.Database
      const adapter = yield* Postgres.make(TestServer.configOf(writer))
      const failure = yield* Effect.flip(ask(adapter, "select repeat('x', 100000000)"))
      expect(failure).toMatchObject({ _tag: "QueryFailed", reason: "resource_limit" })
      expect(yield* rowsOf(adapter, "select 1")).toEqual([[1]])
    })
  )

  it.scoped("rows beyond maxBytes end the statement, whatever it would still do", () =>
    Effect.gen(function* () {
      const { admin, writer } = yield* TestServer.Database
      const user = new URL(writer).username
      const adapter = yield* Postgres.make(TestServer.configOf(writer, { maxConnections: 1 }))
      for (const rest of ["repeat('y', 100000)", "pg_sleep(i / 3)::text || repeat('y', 9000)"]) {
        const answer = yield* ask(adapter, `select ${rest} from generate_series(1, 100000) i`, {
          maxBytes: 20_000,
          maxRows: 100_000
        })
        expect(answer.truncatedBy).toBe("max_bytes")
        yield* until(busy(admin, user), (pids) => pids.length === 0)
      }
      expect(yield* rowsOf(adapter, "select 1")).toEqual([[1]])
    })
  )

  it.scoped("nothing stays in a session: locks, settings, temporary objects", () =>
    Effect.gen(function* () {
      const { writer } = yield* TestServer.Database
      yield* Effect.promise(() =>
        TestServer.runAs(writer, [
          `create function leave_traces() returns text language plpgsql as $$
           begin
             perform pg_advisory_lock(77);
             perform set_config('search_path', 'nowhere', false);
             perform set_config('app.left', 'x', false);
             execute 'prepare left_behind as select 1';
             execute 'listen left_channel';
             return 'done';
           end $$`
        ])
      )
      const adapter = yield* Postgres.make(TestServer.configOf(writer, { maxConnections: 1 }))
      expect(yield* rowsOf(adapter, "select leave_traces()")).toEqual([["done"]])
      expect(
        yield* rowsOf(
          adapter,
          `select (select count(*) from pg_locks where locktype = 'advisory'),
             current_setting('search_path') = 'nowhere', nullif(current_setting('app.left', true), '') is not null,
             (select count(*) from pg_prepared_statements where name <> ''),
             (select count(*) from pg_listening_channels())`
        )
      ).toEqual([[0, false, false, 0, 0]])
    })
  )

  it.scoped("many calls at once, sessions killed among them: every call is answered", () =>
    Effect.gen(function* () {
      const { admin, writer } = yield* TestServer.Database
      const user = new URL(writer).username
      const adapter = yield* Postgres.make(TestServer.configOf(writer, { maxConnections: 4 }))
      const killer = yield* Effect.fork(
        Effect.repeat(
          Effect.delay(
            Effect.promise(() =>
              TestServer.runAs(admin, [
                `select pg_terminate_backend(pid) from pg_stat_activity where usename = '${user}' order by random() limit 1`
              ])
            ),
            20
          ),
          { times: 30 }
        )
      )
      const answers = yield* Effect.forEach(
        Array.from({ length: 400 }, (_, i) => i),
        (i) => Effect.either(ask(adapter, `select ${i}, pg_sleep(0.005)::text`)),
        { concurrency: 4 }
      )
      yield* Fiber.join(killer)
      for (const answer of answers) {
        if (answer._tag === "Left") {
          expect(answer.left).toMatchObject({ _tag: "ConnectionFailed", reason: "closed" })
        }
      }
      expect(answers).toHaveLength(400)
      expect(yield* rowsOf(adapter, "select 1")).toEqual([[1]])
    })
  )

  const said = (failure: AdapterFailure) => JSON.stringify([failure.message, failure.hint, failure.engine])

  it.scoped("every way of not connecting has its reason, and tells nothing of the source", () =>
    Effect.gen(function* () {
      const { admin, writer } = yield* TestServer.Database
      const { username, password, port } = new URL(writer)
      const closing = yield* listening((socket) => socket.destroy())
      const silent = yield* listening(() => {})
      const to = (parts: Parameters<typeof TestServer.withUrl>[1]) => TestServer.withUrl(writer, parts)
      const limited = `mcpq_limited_${TestServer.secret()}`
      yield* Effect.acquireRelease(
        Effect.promise(() =>
          TestServer.runAs(admin, [
            `create role ${limited} login password '${password}' connection limit 1`,
            `create role ${limited}_out password '${password}'`
          ])
        ),
        () =>
          Effect.promise(() => TestServer.runAs(admin, [`drop role ${limited}`, `drop role ${limited}_out`]))
      )
      const unused = yield* Effect.promise(TestServer.freePort)
      const cases: ReadonlyArray<readonly [reason: string, url: string]> = [
        ["refused", to({ port: String(unused) })],
        ["dns", to({ hostname: "nosuch.invalid" })],
        ["timeout", to({ port: String(silent.port) })],
        ["closed", to({ port: String(closing.port) })],
        ["authentication", to({ password: "wrong" })],
        ["authentication", to({ password: "" })],
        ["authentication", to({ username: "mcpq_nobody" })],
        ["authentication", to({ username: `${limited}_out` })],
        ["database_not_found", to({ pathname: "/mcpq_nosuch" })],
        ["tls", to({ search: "?sslmode=require" })],
        ["tls", to({ search: "?sslmode=verify-full&sslrootcert=/nosuch/ca.pem" })]
      ]
      for (const [reason, url] of cases) {
        const adapter = yield* Postgres.make(TestServer.configOf(url, { connectTimeoutMs: 300 }))
        const failure = yield* Effect.flip(ask(adapter, "select 1"))
        expect({ url: reason, tag: failure._tag, reason: failure.reason }).toEqual({
          url: reason,
          tag: "ConnectionFailed",
          reason
        })
        const parts = new URL(url)
        for (const secret of [username, password, port, parts.hostname, "/nosuch", "mcpq_nosuch", limited]) {
          expect(said(failure)).not.toContain(secret)
        }
      }

      const holding = new pg.Client({ connectionString: to({ username: limited }) })
      yield* Effect.acquireRelease(
        Effect.promise(() => holding.connect()),
        () => Effect.promise(() => holding.end())
      )
      const full = yield* Postgres.make(TestServer.configOf(to({ username: limited })))
      expect(yield* Effect.flip(ask(full, "select 1"))).toMatchObject({ reason: "too_many_connections" })
    })
  )

  it.scoped("an engine's sentence does not tell the login, the password or a path", () =>
    Effect.gen(function* () {
      const { writer } = yield* TestServer.Database
      const { username, password } = new URL(writer)
      yield* Effect.promise(() =>
        TestServer.runAs(writer, [
          `create function tell_all() returns text language plpgsql as $$
           begin raise exception 'role "${username}" with ${password} cannot read /var/lib/postgresql/data/pg_hba.conf'; end $$`
        ])
      )
      const adapter = yield* Postgres.make(TestServer.configOf(writer))
      const failure = yield* Effect.flip(ask(adapter, "select tell_all()"))
      expect(failure.message).toBe('role "…" with … cannot read …')
      const own = yield* Effect.flip(ask(adapter, "select '/etc/passwd'::integer"))
      expect(own.message).toContain("/etc/passwd")
    })
  )
})
