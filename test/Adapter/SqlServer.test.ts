import { describe, expect, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { connect } from "../../src/Adapter/SqlServer/Connect.js"
import { make } from "../../src/Adapter/SqlServer.js"
import * as Policy from "../../src/Policy.js"
import { type AdapterFailure, ConnectionFailed, type QueryFailed } from "../../src/QueryError.js"
import { eventually } from "../support/Process.js"
import { selfSigned } from "./SqlServer/Certificate.js"
import { configFor, harness, limits, password, queryOn } from "./SqlServer/Harness.js"
import * as Tds from "./SqlServer/Tds.js"
import { oneRow, type Reply, type Script, type Stage, start } from "./SqlServer/TdsServer.js"

const columns = Tds.columns([Tds.intColumn("a")])
const rowOf = (n: number) => Tds.row([Tds.intValue(n)])
const end = (rows: bigint) => Buffer.concat([Tds.doneInProc(Tds.doneStatus.count, rows), Tds.doneProc()])

const rows = (count: number) => (_: unknown, reply: Reply) =>
  reply.send(columns, ...Array.from({ length: count }, (_, i) => rowOf(i)), end(BigInt(count)))

const endless = async (_: unknown, reply: Reply) => {
  const block = Buffer.concat(Array.from({ length: 500 }, (_, i) => rowOf(i)))
  await reply.part(columns)
  while (!reply.isStopped()) await reply.part(block)
}

/** Never answers, and says when it has begun. */
const silent = (_: unknown, _reply: Reply) => {}

const failing =
  (...said: ReadonlyArray<Tds.ServerMessage>) =>
  (_: unknown, reply: Reply) =>
    reply.send(...said.map(Tds.error), Tds.doneProc(Tds.doneStatus.error))

const error = (number: number, severity = 16, message = `message ${number}`): Tds.ServerMessage => ({
  number,
  class: severity,
  message
})

const failureOf = <A>(effect: Effect.Effect<A, AdapterFailure>) => Effect.flip(effect)

/** What a caller sees of a failure must not tell where the server is or who asks. */
const shown = ({ hint = "", message }: AdapterFailure) => `${message} ${hint}`

/**
 * No connection was given up. On a busy machine a call may come while the engine has yet to acknowledge that it stopped;
 * it then has a second connection.
 */
const expectReuse = (log: ReadonlyArray<string>) => {
  expect(log.filter((entry) => entry.startsWith("close"))).toEqual([])
  expect(log.filter((entry) => entry.startsWith("connect")).length).toBeLessThanOrEqual(2)
}

const tag = (failure: AdapterFailure) => `${failure._tag}/${failure.reason}`

describe("answers", () => {
  it.scopedLive("have no columns where there is no result set", () =>
    Effect.gen(function* () {
      const { query } = yield* harness({ statement: (_, reply) => reply.send(Tds.doneProc()) })
      expect(yield* query("select 1")).toMatchObject({ columns: [], rows: [], truncatedBy: null })
    })
  )

  it.scopedLive("have columns without rows", () =>
    Effect.gen(function* () {
      const { query } = yield* harness({ statement: rows(0) })
      expect(yield* query("select 1")).toMatchObject({ columns: ["a"], columnTypes: ["int"], rows: [] })
    })
  )

  it.scopedLive("are those of the first result set only", () =>
    Effect.gen(function* () {
      const { query, server } = yield* harness({
        statement: async (call, reply) => {
          await reply.part(columns, rowOf(1), Tds.doneInProc(0x11, 1n))
          await endless(call, reply)
        }
      })
      expect((yield* query("select 1")).rows).toEqual([[1]])
      yield* Effect.promise(() => server.seen(/^attention 1/))
    })
  )

  it.scopedLive("leave out what the engine only tells", () =>
    Effect.gen(function* () {
      const { query } = yield* harness({
        statement: (_, reply) =>
          reply.send(columns, Tds.info(error(8153, 0)), rowOf(1), Tds.info(error(0, 10)), end(1n))
      })
      expect((yield* query("select 1")).rows).toEqual([[1]])
    })
  )

  it.scopedLive("end where the limits say, the engine is told, and its connection is used again", () =>
    Effect.gen(function* () {
      const { query, server } = yield* harness({ statement: endless })
      for (let i = 0; i < 5; i++) {
        const answer = yield* query("select 1", { limits: { maxRows: 1000 } })
        expect(answer.rows.length).toBe(1000)
        expect(answer.truncatedBy).toBe("max_rows")
      }
      const bytes = yield* query("select 1", { limits: { maxBytes: 200 } })
      expect(bytes.truncatedBy).toBe("max_bytes")
      server.use({ statement: rows(7) })
      expect((yield* query("select 1", { limits: { maxRows: 7 } })).truncatedBy).toBeNull()
      expect((yield* query("select 1", { limits: { maxRows: 6 } })).truncatedBy).toBe("max_rows")
      expectReuse(server.log)
      expect(server.log.filter((entry) => entry.startsWith("attention")).length).toBeGreaterThanOrEqual(6)
    })
  )

  it.scopedLive("come although the engine does not hear that it should stop", () =>
    Effect.gen(function* () {
      const { query, server } = yield* harness({ statement: endless, ignoreAttention: true })
      expect((yield* query("select 1", { limits: { maxRows: 10 } })).rows.length).toBe(10)
      expect((yield* query("select 1", { limits: { maxRows: 10 } })).rows.length).toBe(10)
      yield* Effect.promise(() => server.seen(/^close/, 2))
    })
  )
})

describe("a call that is interrupted", () => {
  const interrupted = (script: Script) =>
    Effect.gen(function* () {
      const { query, server } = yield* harness(script)
      const fiber = yield* Effect.fork(query("select 1"))
      yield* Effect.promise(() => server.seen(/^statement/))
      const exit = yield* Fiber.interrupt(fiber)
      expect(Exit.isFailure(exit) && Cause.isInterruptedOnly(exit.cause)).toBe(true)
      server.use({})
      expect((yield* query("select 1")).rows).toEqual([[1]])
      return server
    })

  it.scopedLive("stops its statement in the engine, and the connection is used again", () =>
    Effect.gen(function* () {
      const server = yield* interrupted({ statement: silent })
      yield* Effect.promise(() => server.seen(/^end 1/))
      expect(server.log).toContain("attention 1")
      expectReuse(server.log)
    })
  )

  it.scopedLive("stops an endless answer", () =>
    Effect.gen(function* () {
      const running = yield* Deferred.make<void>()
      const block = Buffer.concat(Array.from({ length: 500 }, (_, i) => rowOf(i)))
      const { query, server } = yield* harness({
        statement: async (_, reply) => {
          await reply.part(columns)
          for (let sent = 0; !reply.isStopped(); sent++) {
            await reply.part(block)
            if (sent === 20) Effect.runFork(Deferred.succeed(running, undefined))
          }
        }
      })
      const fiber = yield* Effect.fork(
        query("select 1", { limits: { maxRows: 1_000_000_000, maxBytes: 1_000_000_000 } })
      )
      yield* Deferred.await(running)
      yield* Fiber.interrupt(fiber)
      yield* Effect.promise(() => server.seen(/^end 1/))
      expect(server.log).toContain("attention 1")
      server.use({})
      expect((yield* query("select 1")).rows).toEqual([[1]])
      expectReuse(server.log)
    })
  )

  it.scopedLive("gives its connection up when the engine does not hear it", () =>
    Effect.gen(function* () {
      const server = yield* interrupted({ statement: silent, ignoreAttention: true })
      yield* Effect.promise(() => server.seen(/^close 1/))
      expect(server.log).toContain("connect 2")
    })
  )

  it.scopedLive("gives its connection up when the server talks on", () =>
    Effect.gen(function* () {
      const server = yield* interrupted({ statement: endless, ignoreAttention: true })
      yield* Effect.promise(() => server.seen(/^close 1/))
      expect(server.log).toContain("connect 2")
    })
  )

  for (const script of [{ prelogin: "silence" }, { login: "silence" }] as const)
    it.scopedLive(`leaves its attempt to connect behind (${Object.keys(script)[0]})`, () =>
      Effect.gen(function* () {
        const { query, server } = yield* harness(script, { connectTimeoutMs: 300 })
        const fiber = yield* Effect.fork(query("select 1"))
        yield* Effect.promise(() => server.seen(new RegExp(`^${Object.keys(script)[0]}`)))
        yield* Fiber.interrupt(fiber)
        server.use({})
        expect((yield* query("select 1")).rows).toEqual([[1]])
        expect(server.log).toContain("connect 2")
        yield* Effect.promise(() => server.seen(/^close 1/))
      })
    )

  it.scopedLive("leaves nothing of a connection that does not stand yet", () =>
    Effect.gen(function* () {
      const server = yield* start({})
      const fiber = yield* Effect.fork(connect(configFor(server.port)))
      yield* Effect.yieldNow()
      yield* Fiber.interrupt(fiber)
      const wire = yield* connect(configFor(server.port))
      yield* Effect.promise(() => eventually("one connection is open", () => server.open() === 1))
      wire.close()
    })
  )

  it.scopedLive("leaves what it has connected to the next call", () =>
    Effect.gen(function* () {
      const login = yield* Deferred.make<void>()
      const { query, server } = yield* harness({ awaitLogin: () => Effect.runPromise(Deferred.await(login)) })
      const fiber = yield* Effect.fork(query("select 1"))
      yield* Effect.promise(() => server.seen(/^login/))
      yield* Fiber.interrupt(fiber)
      const next = yield* Effect.fork(query("select 2"))
      yield* Effect.promise(() => server.seen(/^login/, 2))
      yield* Deferred.succeed(login, undefined)
      expect((yield* Fiber.join(next)).rows).toEqual([[1]])
      expect((yield* query("select 3")).rows).toEqual([[1]])
      expect(server.log).not.toContain("connect 3")
    })
  )

  it.scopedLive("leaves the oldest attempt alone, however many calls were too short for a login", () =>
    Effect.gen(function* () {
      const login = yield* Deferred.make<void>()
      const { query, server } = yield* harness({ awaitLogin: () => Effect.runPromise(Deferred.await(login)) })
      for (let count = 1; count <= 10; count++) {
        const fiber = yield* Effect.fork(query("select 1"))
        yield* Effect.promise(() => server.seen(/^login/, count))
        yield* Fiber.interrupt(fiber)
      }
      yield* Effect.promise(() => server.seen(/^close/, 9))
      expect(server.log).not.toContain("close 1")
      const next = yield* Effect.fork(query("select 2"))
      yield* Effect.promise(() => server.seen(/^login/, 11))
      yield* Deferred.succeed(login, undefined)
      expect((yield* Fiber.join(next)).rows).toEqual([[1]])
      expect(server.open()).toBeLessThanOrEqual(2)
    })
  )

  it.scopedLive("leaves a connection that only the next call uses", () =>
    Effect.gen(function* () {
      const login = yield* Deferred.make<void>()
      const answer = yield* Deferred.make<void>()
      const { query, server } = yield* harness({
        awaitLogin: () => Effect.runPromise(Deferred.await(login)),
        statement: async (_, reply) => {
          await Effect.runPromise(Deferred.await(answer))
          reply.send(oneRow)
        }
      })
      const fiber = yield* Effect.fork(query("select 1"))
      yield* Effect.promise(() => server.seen(/^login/))
      yield* Fiber.interrupt(fiber)
      yield* Deferred.succeed(login, undefined)
      const next = yield* Effect.fork(query("select 2"))
      yield* Effect.promise(() => server.seen(/^statement/))
      const others = yield* Effect.forEach([1, 2], () => Effect.fork(query("select 3")))
      yield* Effect.promise(() => server.seen(/^statement/, 3))
      yield* Deferred.succeed(answer, undefined)
      for (const { rows } of yield* Fiber.joinAll([next, ...others])) expect(rows).toEqual([[1]])
      const used = server.log.filter((entry) => entry.startsWith("statement"))
      expect(new Set(used.map((entry) => entry.split(" ")[1])).size).toBe(3)
    })
  )
})

describe("a session", () => {
  it.scopedLive("is reset and has a transaction that ends, for every call", () =>
    Effect.gen(function* () {
      const { query, server } = yield* harness()
      yield* query("select 1")
      yield* query("select 2")
      expect(server.log).toEqual([
        "connect 1",
        "prelogin 1",
        "login 1",
        "session 1",
        "begin 1 reset",
        "statement 1 select 1",
        "end 1",
        "begin 1 reset",
        "statement 1 select 2",
        "end 1"
      ])
    })
  )

  it.scopedLive("is made by the first call, not before", () =>
    Effect.gen(function* () {
      const { server } = yield* harness()
      expect(server.log).toEqual([])
    })
  )

  it.scopedLive("ends its transaction after an error, too", () =>
    Effect.gen(function* () {
      const { query, server } = yield* harness({ statement: failing(error(208)), depth: 0 })
      expect(tag(yield* failureOf(query("select 1")))).toBe("QueryFailed/unknown_table")
      expect(server.log.at(-1)).toBe("end 1")
    })
  )

  it.scopedLive("that lost its transaction is a refusal, and its connection is given up", () =>
    Effect.gen(function* () {
      const { query, server } = yield* harness({ depth: 0 })
      expect(tag(yield* failureOf(query("select 1")))).toBe("QueryRejected/read_only")
      yield* Effect.promise(() => server.seen(/^close 1/))
      server.use({ depth: 2 })
      expect(tag(yield* failureOf(query("select 1")))).toBe("QueryRejected/read_only")
    })
  )

  it.scopedLive("that cannot be begun says why", () =>
    Effect.gen(function* () {
      const { query } = yield* harness({
        begin: (reply) => reply.send(Tds.error(error(3906)), Tds.done(Tds.doneStatus.error))
      })
      expect(tag(yield* failureOf(query("select 1")))).toBe("QueryRejected/read_only")
    })
  )

  it.scopedLive("waits for locks no longer than most of the call's time", () =>
    Effect.gen(function* () {
      const seen: Array<number> = []
      const { query } = yield* harness({
        begin: (reply, sql) => {
          seen.push(Number(/SET LOCK_TIMEOUT (\d+)/.exec(sql)?.[1]))
          reply.send(Tds.done())
        }
      })
      for (const timeoutMs of [1, 1000, 60_000]) yield* query("select 1", { limits: { timeoutMs } })
      expect(seen[0]).toBe(1)
      expect(seen[1]).toBeLessThanOrEqual(800)
      expect(seen.slice(2)).toEqual([10_000])
    })
  )

  it.scopedLive("is one of several: calls run side by side", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const { query, server } = yield* harness({
        statement: async (_, reply) => {
          await Effect.runPromise(Deferred.await(gate))
          reply.send(oneRow)
        }
      })
      const fibers = yield* Effect.forEach([1, 2, 3, 4], () => Effect.fork(query("select 1")))
      yield* Effect.promise(() => server.seen(/^statement/, 4))
      expect(server.open()).toBe(4)
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.joinAll(fibers)
    })
  )

  it("is closed with the adapter's scope", () =>
    Effect.gen(function* () {
      const { server } = yield* Effect.scoped(
        Effect.gen(function* () {
          const made = yield* harness()
          yield* made.query("select 1")
          return made
        })
      )
      yield* Effect.promise(() => server.seen(/^close 1/))
    }).pipe(Effect.runPromise))
})

describe("a connection that drops", () => {
  const times = 100
  const halfRow = rowOf(1).subarray(0, 3)
  const stages: Record<string, { readonly script: Script; readonly beforeFirstRow: boolean | undefined }> = {
    ...Object.fromEntries(
      (["accept", "prelogin", "login", "session", "begin", "statement"] satisfies ReadonlyArray<Stage>).map(
        (stage) => [
          stage,
          {
            script: { drop: (at: Stage) => at === stage },
            beforeFirstRow: stage === "begin" || stage === "statement" ? true : undefined
          }
        ]
      )
    ),
    "before the rows": {
      script: { statement: (_, reply) => void reply.part(columns).then(reply.drop) },
      beforeFirstRow: true
    },
    "within the first row": {
      script: { statement: (_, reply) => void reply.part(columns, halfRow).then(reply.drop) },
      beforeFirstRow: true
    },
    "after a row": {
      // More than the socket's buffers hold, so that the first of the rows has been read when the last is sent.
      script: {
        statement: async (_, reply) => {
          const wide = Tds.row([Tds.nvarcharValue("x".repeat(4000))])
          await reply.part(Tds.columns([{ name: "a", type: Tds.nvarchar(8000) }]))
          for (let i = 0; i < 1000; i++) await reply.part(wide)
          reply.drop()
        }
      },
      beforeFirstRow: false
    }
  }
  for (const [stage, { beforeFirstRow, script }] of Object.entries(stages))
    it.scopedLive(`${stage}: answered ${times} times, and the next call works`, () =>
      Effect.gen(function* () {
        const server = yield* start(script)
        const adapter = yield* make(configFor(server.port))
        for (let i = 0; i < times; i++) {
          // What fails while it is being made is made anew each time; what was made is used as long as it lasts.
          const one = beforeFirstRow === undefined ? yield* make(configFor(server.port)) : adapter
          server.use(script)
          const failure = yield* failureOf(queryOn(one)("select 1"))
          expect(tag(failure)).toBe("ConnectionFailed/closed")
          if (failure instanceof ConnectionFailed) expect(failure.beforeFirstRow).toBe(beforeFirstRow)
          server.use({})
          expect((yield* queryOn(one)("select 1")).rows).toEqual([[1]])
        }
      })
    )

  it.scopedLive(`at the end of the transaction: the answer stays, ${times} times`, () =>
    Effect.gen(function* () {
      const { query, server } = yield* harness()
      for (let i = 0; i < times; i++) {
        server.use({ drop: (stage) => stage === "end" })
        expect((yield* query("select 1")).rows).toEqual([[1]])
        server.use({})
        expect((yield* query("select 1")).rows).toEqual([[1]])
      }
    })
  )

  it.scopedLive(`between calls: replaced at the next call, ${times} times`, () =>
    Effect.gen(function* () {
      const { query, server } = yield* harness()
      for (let i = 0; i < times; i++) {
        expect((yield* query("select 1")).rows).toEqual([[1]])
        const closed = server.log.filter((entry) => entry.startsWith("close")).length
        server.dropAll()
        yield* Effect.promise(() => server.seen(/^close/, closed + 1))
        // The client hears of it within the same turns of the loop; what it has not heard yet is a retryable failure.
        const answer = yield* Effect.either(query("select 1"))
        if (Either.isLeft(answer)) expect(tag(answer.left)).toBe("ConnectionFailed/closed")
      }
    })
  )

  it.scopedLive("casts doubt on all that were made before it", () =>
    Effect.gen(function* () {
      const { query, server } = yield* harness()
      const gate = yield* Deferred.make<void>()
      server.use({
        statement: async (_, reply) => {
          await Effect.runPromise(Deferred.await(gate))
          reply.send(oneRow)
        }
      })
      const fibers = yield* Effect.forEach([1, 2, 3, 4], () => Effect.fork(query("select 1")))
      yield* Effect.promise(() => server.seen(/^statement/, 4))
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.joinAll(fibers)
      server.use({ drop: (stage) => stage === "begin" })
      yield* failureOf(query("select 1"))
      server.use({})
      for (let i = 0; i < 4; i++) yield* query("select 1")
      const used = server.log.filter((entry) => entry.startsWith("statement")).slice(-4)
      expect(used.every((entry) => Number(entry.split(" ")[1]) > 4)).toBe(true)
    })
  )
})

describe("bytes that the driver does not know", () => {
  const odd: Record<string, Buffer> = {
    "an unknown token": Tds.message(Tds.hex("09 09 09 09")),
    "an unknown type": Tds.message(
      Buffer.concat([Tds.u8(0x81), Tds.u16(1), Tds.u32(0), Tds.u16(0), Tds.u8(0x09)])
    ),
    "a message that ends inside a token": Tds.message(Buffer.concat([columns, rowOf(1).subarray(0, 3)])),
    "a value of an impossible length": Tds.message(
      Buffer.concat([
        Tds.columns([{ name: "a", type: Buffer.concat([Tds.u8(0xe7), Tds.u16(0xffff), Tds.latin1]) }]),
        Tds.u8(0xd1),
        Tds.u64(3n),
        Tds.u32(1),
        Tds.u8(0x41),
        Tds.u32(0),
        end(1n)
      ])
    ),
    "an integer of nine bytes": Tds.message(
      Buffer.concat([
        columns,
        Tds.u8(0xd1),
        Tds.counted(Buffer.alloc(1)),
        Tds.u8(0xd1),
        Tds.u8(9),
        Buffer.alloc(2)
      ])
    ),
    "a sql_variant of an unknown type": Tds.message(
      Buffer.concat([
        Tds.columns([{ name: "a", type: Tds.hex("62 491f0000") }]),
        Tds.row([Tds.variant(0x09, Buffer.alloc(0), Buffer.alloc(4))]),
        end(1n)
      ])
    ),
    "a packet shorter than its header": Tds.hex("04 01 0003 00 00 01 00"),
    "another protocol": Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n")
  }
  for (const [what, bytes] of Object.entries(odd))
    it.scopedLive(`${what}: the call is answered, the process goes on`, () =>
      Effect.gen(function* () {
        const { query, server } = yield* harness({
          statement: (_, reply) => {
            reply.raw(bytes)
            // The driver waits for the rest of what it takes for a packet.
            if (what === "another protocol") reply.drop()
          }
        })
        for (let i = 0; i < 3; i++) {
          const failure = yield* failureOf(query("select 1"))
          expect(tag(failure)).toBe("ConnectionFailed/closed")
        }
        server.use({})
        expect((yield* query("select 1")).rows).toEqual([[1]])
      })
    )

  const handshakes: Record<string, Script> = {
    "an empty answer to PRELOGIN": { prelogin: Buffer.alloc(0) },
    "a PRELOGIN that points outside of itself": { prelogin: Tds.hex("01 ffff 0001 ff") },
    "a PRELOGIN without its end": { prelogin: Tds.hex("00 000b 0006") },
    "a PRELOGIN without encryption": { prelogin: Tds.hex("00 0006 0006 ff 10 00 0000 0000") },
    "rows instead of a login": { login: Buffer.concat([columns, rowOf(1), end(1n)]) },
    "an unknown token at login": { login: Tds.hex("09 09") }
  }
  for (const [what, script] of Object.entries(handshakes))
    it.scopedLive(`${what}: the call is answered, the process goes on`, () =>
      Effect.gen(function* () {
        const { query, server } = yield* harness(script)
        const failure = yield* failureOf(query("select 1"))
        expect(tag(failure)).toBe("ConnectionFailed/closed")
        server.use({})
        expect((yield* query("select 1")).rows).toEqual([[1]])
      })
    )
})

describe("a login", () => {
  const refused: ReadonlyArray<readonly [string, ReadonlyArray<Tds.ServerMessage>, string]> = [
    ["wrong password", [error(18456, 14, "Login failed for user 'reader'.")], "authentication"],
    ["locked", [error(18486, 14)], "authentication"],
    ["no such database", [error(4060, 11), error(18456, 14)], "database_not_found"],
    ["no such database, as Babelfish says it", [error(911, 16)], "database_not_found"],
    ["too many connections", [error(17809, 20)], "too_many_connections"],
    ["a busy Azure server", [error(10928, 16)], "too_many_connections"],
    ["a server that shuts down", [error(6005, 14)], "refused"],
    ["an error nobody knows", [error(65000, 16)], "refused"]
  ]
  for (const [what, said, reason] of refused)
    it.scopedLive(`${what}: ${reason}`, () =>
      Effect.gen(function* () {
        const { query, server } = yield* harness({ login: said })
        const failure = yield* failureOf(query("select 1"))
        expect(tag(failure)).toBe(`ConnectionFailed/${reason}`)
        expect(shown(failure)).not.toMatch(/reader|127\.0\.0\.1|a secret/)
        expect(shown(failure)).not.toContain(String(server.port))
        expect(failure.engine?.code).toBe(String(said[0]?.number))
        server.use({})
        expect((yield* query("select 1")).rows).toEqual([[1]])
      })
    )

  it.scopedLive("that gets no answer times out", () =>
    Effect.gen(function* () {
      const { query } = yield* harness({ login: "silence" }, { connectTimeoutMs: 200 })
      expect(tag(yield* failureOf(query("select 1")))).toBe("ConnectionFailed/timeout")
    })
  )

  it.scopedLive("to a server that says nothing times out", () =>
    Effect.gen(function* () {
      const { query } = yield* harness({ prelogin: "silence" }, { connectTimeoutMs: 200 })
      expect(tag(yield* failureOf(query("select 1")))).toBe("ConnectionFailed/timeout")
    })
  )

  it.scopedLive("where nothing listens is refused", () =>
    Effect.gen(function* () {
      const port = yield* Effect.scoped(Effect.map(harness(), ({ server }) => server.port))
      const adapter = yield* make(configFor(port))
      const failure = yield* failureOf(queryOn(adapter)("select 1"))
      expect(tag(failure)).toBe("ConnectionFailed/refused")
      expect(shown(failure)).not.toMatch(/127\.0\.0\.1|reader/)
    })
  )

  it.scopedLive("to a host without an address is dns", () =>
    Effect.gen(function* () {
      const adapter = yield* make(configFor(1433, { host: "nosuch.invalid" }))
      expect(tag(yield* failureOf(queryOn(adapter)("select 1")))).toBe("ConnectionFailed/dns")
    })
  )

  it.scopedLive("is tried again by the next call, never from memory", () =>
    Effect.gen(function* () {
      const { query, server } = yield* harness({ login: [error(18456, 14)] })
      for (let i = 0; i < 20; i++) {
        yield* failureOf(query("select 1"))
        server.use({ login: [error(18456, 14)] })
      }
      server.use({})
      expect((yield* query("select 1")).rows).toEqual([[1]])
    })
  )
})

describe("encryption", () => {
  const certificate = selfSigned(["db.test"], ["127.0.0.1"])
  const ca = certificate.cert
  const offers = { off: 0, on: 1, "not supported": 2, required: 3 }

  for (const [offer, encryption] of Object.entries(offers)) {
    const encrypts = encryption === 1 || encryption === 3
    it.scopedLive(`true, and the server's offer is ${offer}`, () =>
      Effect.gen(function* () {
        const { query, server } = yield* harness({ encryption, certificate }, { encrypt: true, ca })
        if (encrypts) expect((yield* query("select 1")).rows).toEqual([[1]])
        else {
          expect(tag(yield* failureOf(query("select 1")))).toBe("ConnectionFailed/tls")
          expect(server.log.some((entry) => entry.startsWith("login"))).toBe(false)
        }
      })
    )
    it.scopedLive(`false, and the server's offer is ${offer}`, () =>
      Effect.gen(function* () {
        const { query, server } = yield* harness({ encryption, certificate }, { encrypt: false })
        if (encrypts) {
          expect(tag(yield* failureOf(query("select 1")))).toBe("ConnectionFailed/tls")
          expect(server.log.some((entry) => entry.startsWith("login"))).toBe(false)
        } else expect((yield* query("select 1")).rows).toEqual([[1]])
      })
    )
  }

  const checked: ReadonlyArray<readonly [string, Parameters<typeof configFor>[1], boolean]> = [
    ["a certificate nobody signed", {}, false],
    ["any certificate, trusted blindly", { trustServerCertificate: true }, true],
    ["a certificate of a trusted authority", { ca }, true],
    ["another authority", { ca: selfSigned(["db.test"], ["127.0.0.1"]).cert }, false],
    ["the name that was asked for", { ca, serverName: "db.test" }, true],
    ["another name", { ca, serverName: "other.test" }, false],
    ["another address", { ca, serverName: "127.0.0.2" }, false],
    ["an authority that cannot be read", { ca: "/nonexistent/ca.pem" }, false]
  ]
  for (const [what, more, good] of checked)
    it.scopedLive(`checks the certificate: ${what}`, () =>
      Effect.gen(function* () {
        const { query, server } = yield* harness({ encryption: 1, certificate }, { encrypt: true, ...more })
        if (good) expect((yield* query("select 1")).rows).toEqual([[1]])
        else {
          const failure = yield* failureOf(query("select 1"))
          expect(tag(failure)).toBe("ConnectionFailed/tls")
          expect(shown(failure)).not.toMatch(/127\.0\.0\.1|nonexistent|db\.test/)
          expect(server.log.some((entry) => entry.startsWith("login"))).toBe(false)
        }
      })
    )

  it.scopedLive("without a name for this address", () =>
    Effect.gen(function* () {
      const named = selfSigned(["db.test"])
      const { query } = yield* harness(
        { encryption: 1, certificate: named },
        { encrypt: true, ca: named.cert }
      )
      expect(tag(yield* failureOf(query("select 1")))).toBe("ConnectionFailed/tls")
    })
  )

  it.scopedLive("strict: TLS from the first byte on", () =>
    Effect.gen(function* () {
      const { query } = yield* harness({ strict: true, certificate }, { encrypt: "strict", ca })
      expect((yield* query("select 1")).rows).toEqual([[1]])
    })
  )

  it.scopedLive("strict, and the certificate is not trusted", () =>
    Effect.gen(function* () {
      const { query } = yield* harness({ strict: true, certificate }, { encrypt: "strict" })
      expect(tag(yield* failureOf(query("select 1")))).toBe("ConnectionFailed/tls")
    })
  )

  it.scopedLive("strict, and the server knows no TLS there", () =>
    Effect.gen(function* () {
      const { query } = yield* harness({}, { encrypt: "strict", ca, connectTimeoutMs: 500 })
      expect(["ConnectionFailed/tls", "ConnectionFailed/closed", "ConnectionFailed/timeout"]).toContain(
        tag(yield* failureOf(query("select 1")))
      )
    })
  )

  it.scopedLive("long answers and cancellation work through it", () =>
    Effect.gen(function* () {
      const { query, server } = yield* harness(
        { encryption: 1, certificate, statement: endless },
        { encrypt: true, ca }
      )
      for (let i = 0; i < 3; i++)
        expect((yield* query("select 1", { limits: { maxRows: 900 } })).rows.length).toBe(900)
      expectReuse(server.log)
    })
  )
})

describe("errors of a statement", () => {
  it.scopedLive("carry the engine's number, line and sentence", () =>
    Effect.gen(function* () {
      const { query } = yield* harness({
        statement: failing({ number: 207, class: 16, message: "Invalid column name 'nme'.", line: 3 })
      })
      const failure = yield* failureOf(query("select 1"))
      expect(failure).toMatchObject({
        _tag: "QueryFailed",
        reason: "unknown_column",
        message: "Invalid column name 'nme'.",
        engine: { code: "207", line: 3 }
      })
    })
  )

  it.scopedLive("that come together are one: the first that says more", () =>
    Effect.gen(function* () {
      const { query } = yield* harness({ statement: failing(error(208), error(8180)) })
      const failure = yield* failureOf(query("select 1"))
      expect(tag(failure)).toBe("QueryFailed/unknown_table")
      expect((failure as QueryFailed).engine?.code).toBe("208")
    })
  )

  it.scopedLive("may come after rows", () =>
    Effect.gen(function* () {
      const { query, server } = yield* harness({
        statement: (_, reply) =>
          reply.send(columns, rowOf(1), Tds.error(error(8134)), Tds.doneProc(Tds.doneStatus.error))
      })
      expect(tag(yield* failureOf(query("select 1")))).toBe("QueryFailed/division_by_zero")
      server.use({})
      yield* query("select 1")
      expect(server.log).not.toContain("connect 2")
    })
  )

  it.scopedLive("of class 20 and above are a lost connection", () =>
    Effect.gen(function* () {
      const { query, server } = yield* harness({
        statement: (_, reply) => {
          reply.send(Tds.error(error(596, 21)), Tds.doneProc(Tds.doneStatus.error))
          reply.drop()
        }
      })
      const failure = yield* failureOf(query("select 1"))
      expect(failure).toMatchObject({ _tag: "ConnectionFailed", reason: "closed", beforeFirstRow: true })
      server.use({})
      expect((yield* query("select 1")).rows).toEqual([[1]])
    })
  )

  it.scopedLive("may have no words", () =>
    Effect.gen(function* () {
      const { query } = yield* harness({
        statement: (_, reply) => reply.send(Tds.doneProc(Tds.doneStatus.error))
      })
      expect(tag(yield* failureOf(query("select 1")))).toBe("QueryFailed/engine_error")
    })
  )

  it.scopedLive("about parameters are told before the engine is asked", () =>
    Effect.gen(function* () {
      const { query, server } = yield* harness()
      for (const [sql, params] of [
        ["select @p1 + @p2", [1]],
        ["select 1", [1]],
        ["select @name", []],
        ["select @p2", [1, 2]],
        ["select @p0", [1]]
      ] as const)
        expect(tag(yield* failureOf(query(sql, { params })))).toBe("QueryFailed/parameters")
      expect(server.log).toEqual([])
      yield* query("select @P1, @@rowcount, '@p9' -- @p8", { params: [1] })
      yield* query("select x.query('sql:variable(\"@p1\")') from t", { params: ["a"] })
    })
  )
})

describe("the @effect/sql client", () => {
  it.scopedLive("runs on the adapter's connections", () =>
    Effect.gen(function* () {
      const { adapter, server } = yield* harness()
      const sql = yield* adapter.client
      expect(yield* sql`select ${1} as a where ${"x"} = ${"x"}`).toEqual([{ a: 1 }])
      expect(server.log).toContain("statement 1 select @1 as a where @2 = @3")
      expect(server.log.at(-1)).toBe("end 1")
    })
  )

  it.scopedLive("fails with the adapter's failure as its cause", () =>
    Effect.gen(function* () {
      const { adapter } = yield* harness({ statement: failing(error(208)) })
      const sql = yield* adapter.client
      const failure = yield* Effect.flip(sql`select * from nope`)
      expect(failure._tag).toBe("SqlError")
      expect(failure.cause).toMatchObject({ _tag: "QueryFailed", reason: "unknown_table" })
    })
  )
})

describe("plans", () => {
  const text = (name: string): Tds.Column => ({ name, type: Tds.nvarchar(8000) })
  const plan = (lines: ReadonlyArray<string>) =>
    Buffer.concat([
      Tds.columns([text("StmtText"), { name: "EstimateRows", type: Tds.hex("6d 08") }]),
      ...lines.map((line) => Tds.row([Tds.nvarcharValue(line), Tds.counted(Tds.f64(4))])),
      Tds.done(0x10, BigInt(lines.length))
    ])
  const explained = (statement: Script["statement"], params: ReadonlyArray<number | string> = []) =>
    Effect.gen(function* () {
      const { adapter, server } = yield* harness(statement === undefined ? {} : { statement })
      const admitted = yield* Policy.admit("mssql", {
        sql: params.length > 0 ? "select * from t where a = @p1 and b = @p2" : "select * from t",
        params
      })
      return { answer: yield* Effect.either(adapter.explain(admitted, limits)), server }
    })

  it.scopedLive("come from SHOWPLAN, on a session that nobody uses afterwards", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const { answer, server } = yield* explained(
        (call, reply) => {
          seen.push(`${call.kind} ${call.sql}`)
          if (call.sql.startsWith("SET SHOWPLAN")) reply.send(Tds.done())
          else reply.send(plan([call.sql, "  |--Table Scan(OBJECT:([t]))"]))
        },
        [1, "x"]
      )
      expect(Either.getOrThrow(answer).at(-1)).toBe("  |--Table Scan(OBJECT:([t]))  (rows=4)")
      expect(seen.at(-1)).toBe(
        "batch DECLARE @p1 int, @p2 nvarchar(4000); select * from t where a = @p1 and b = @p2"
      )
      yield* Effect.promise(() => server.seen(/^close 1/))
    })
  )

  it.scopedLive("are refused where the engine would run the statement instead", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const { answer } = yield* explained((call, reply) => {
        seen.push(call.sql)
        if (call.sql.startsWith("SET SHOWPLAN")) reply.send(Tds.done())
        else reply.send(oneRow)
      })
      expect(Either.isLeft(answer) && tag(answer.left)).toBe("QueryFailed/engine_error")
      expect(seen.some((sql) => sql.includes("from t"))).toBe(false)
    })
  )

  it.scopedLive("are refused where there is no SHOWPLAN", () =>
    Effect.gen(function* () {
      const { answer } = yield* explained(failing(error(195)))
      expect(Either.isLeft(answer) && tag(answer.left)).toBe("QueryFailed/engine_error")
    })
  )

  it.scopedLive("need a right", () =>
    Effect.gen(function* () {
      const { answer } = yield* explained(failing(error(262)))
      expect(Either.isLeft(answer) && tag(answer.left)).toBe("QueryFailed/permission_denied")
      expect(Either.isLeft(answer) && answer.left.hint).toContain("SHOWPLAN")
    })
  )
})

describe("the report", () => {
  const table = (rows: ReadonlyArray<ReadonlyArray<string | number | null>>) =>
    Buffer.concat([
      Tds.columns((rows[0] ?? [""]).map((_, i) => ({ name: `c${i}`, type: Tds.nvarchar(8000) }))),
      ...rows.map((row) =>
        Tds.row(row.map((cell) => (cell === null ? Tds.u16(0xffff) : Tds.nvarcharValue(String(cell)))))
      ),
      Tds.done(0x10, BigInt(rows.length))
    ])

  it.scopedLive("tells what the login may do beyond reading, and how to make one that may not", () =>
    Effect.gen(function* () {
      const { adapter } = yield* harness({
        statement: (call, reply) => {
          if (call.sql.includes("@@VERSION"))
            reply.send(table([["Microsoft SQL Server 2022\n\tmore", "app", "Sales ]x"]]))
          else if (call.sql.includes("IS_SRVROLEMEMBER")) reply.send(Tds.error(error(195)), Tds.done(2))
          else if (call.sql.includes("'DATABASE'")) reply.send(table([["SELECT"], ["CONNECT"], ["INSERT"]]))
          else if (call.sql.includes("HAS_PERMS_BY_NAME"))
            reply.send(
              table([
                ["INSERT", 3],
                ["UPDATE", 0]
              ])
            )
          else if (call.sql.includes("SCHEMA_NAME")) reply.send(table([["sales"], ["dbo"]]))
          else reply.send(table([]))
        }
      })
      const report = yield* adapter.report
      expect(report).toMatchObject({
        version: "Microsoft SQL Server 2022",
        tls: false,
        login: "app",
        excessPrivileges: ["INSERT on the database", "INSERT on 3 tables or views"]
      })
      expect(report.leastPrivilege).toContain("USE [Sales ]]x]")
      expect(report.leastPrivilege).toContain("GRANT SELECT ON SCHEMA::[dbo] TO [mcp_query_reader]")
      expect(report.leastPrivilege).toContain("GRANT SELECT ON SCHEMA::[sales] TO [mcp_query_reader]")
      expect(report.leastPrivilege.join("\n")).not.toContain(password)
    })
  )

  it.scopedLive("needs no other login where this one may only read", () =>
    Effect.gen(function* () {
      const { adapter } = yield* harness({
        statement: (call, reply) => {
          if (call.sql.includes("@@VERSION"))
            reply.send(table([["Microsoft SQL Server 2022", "reader", "sales"]]))
          else if (call.sql.includes("'DATABASE'")) reply.send(table([["SELECT"], ["CONNECT"]]))
          else reply.send(table([]))
        }
      })
      expect(yield* adapter.report).toMatchObject({ excessPrivileges: [], leastPrivilege: [] })
    })
  )
})
