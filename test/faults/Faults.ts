/** What is done to the server and its engines. Each fault heals itself, also when it is interrupted. */
import { readFileSync, renameSync, utimesSync, writeFileSync } from "node:fs"
import * as Effect from "effect/Effect"
import type { Scope } from "effect/Scope"
import pg from "pg"
import Driver from "../../src/Adapter/Sqlite/Driver.js"
import { runAs } from "../Adapter/Postgres/TestServer.js"
import { childrenOf } from "../support/Process.js"
import { capMs, type Outcome, quick, type Target } from "./Calls.js"
import type { Client } from "./Client.js"
import type { Random } from "./Random.js"
import { type FileSource, type NetworkSource, type PostgresSource, restore, type World } from "./World.js"

export interface Scene {
  readonly world: World
  readonly client: Client
  readonly targets: readonly [Target, ...ReadonlyArray<Target>]
  readonly random: Random
  /** Says that more may come of a source's calls from now on. */
  readonly allow: (id: string, outcomes: ReadonlyArray<Outcome>) => void
  readonly nonce: () => string
}

interface Fault {
  readonly kind: string
  readonly weight: number
  readonly inject: (scene: Scene) => Effect.Effect<void, never, Scope>
}

const fault = (
  kind: string,
  weight: number,
  inject: (scene: Scene) => Effect.Effect<void, never, Scope>
): Fault => ({ kind, weight, inject })

/** `begin`, a while, `end`; the end comes in any case. */
const during = (ms: number, begin: Effect.Effect<void>, end: Effect.Effect<void>) =>
  Effect.acquireUseRelease(
    begin,
    () => Effect.sleep(ms),
    () => end
  )

const someChild = ({ client, random }: Scene) => {
  const children = childrenOf(client.pid)
  const [first, ...rest] = children
  return first === undefined ? undefined : random.pick([first, ...rest])
}

const signal = (pid: number, name: NodeJS.Signals) =>
  Effect.sync(() => {
    try {
      process.kill(pid, name)
    } catch {
      // It has ended meanwhile.
    }
  })

const onChild = (use: (pid: number, scene: Scene) => Effect.Effect<void>) => (scene: Scene) =>
  Effect.suspend(() => {
    const pid = someChild(scene)
    return pid === undefined ? Effect.void : use(pid, scene)
  })

const onNetwork =
  (use: (source: NetworkSource, scene: Scene) => Effect.Effect<void, never, Scope>) => (scene: Scene) =>
    Effect.suspend(() => {
      const [first, ...rest] = scene.world.networks
      return first === undefined ? Effect.void : use(scene.random.pick([first, ...rest]), scene)
    })

const onFile =
  (use: (source: FileSource, scene: Scene) => Effect.Effect<void, never, Scope>) => (scene: Scene) =>
    Effect.suspend(() => {
      const [first, ...rest] = scene.world.files
      return first === undefined ? Effect.void : use(scene.random.pick([first, ...rest]), scene)
    })

const asAdmin = (source: PostgresSource, statements: ReadonlyArray<string>) =>
  Effect.promise(() => runAs(source.admin, statements).catch(() => []))

const onPostgres =
  (use: (source: PostgresSource, scene: Scene) => Effect.Effect<void, never, Scope>) => (scene: Scene) =>
    use(scene.world.postgres, scene)

/** Lines that are no request, and how many errors without an id each must bring. */
const garbage: readonly [readonly [string, number], ...ReadonlyArray<readonly [string, number]>] = [
  ["this is no JSON", 1],
  ['{"jsonrpc":"2.0","id":', 1],
  ["[]", 1],
  ["7", 1],
  ["null", 1],
  ['"text"', 1],
  ["{}", 1],
  ['{"jsonrpc":"1.0","method":"ping"}', 1],
  ['{"jsonrpc":"2.0","id":null,"method":"ping"}', 1],
  ['{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}', 1],
  ['[{"jsonrpc":"2.0","id":1,"method":"ping"}]', 1],
  ["", 0],
  ["   \t ", 0],
  ['{"jsonrpc":"2.0","method":"notifications/unheard_of"}', 0],
  ['{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":987654321}}', 0],
  ['{"jsonrpc":"2.0","id":999999999,"result":{}}', 0],
  ['{"jsonrpc":"2.0","id":999999999,"error":{"code":-1,"message":"no"}}', 0]
]

const oddRequests: readonly [
  readonly [string, unknown, ReadonlyArray<number>],
  ...ReadonlyArray<readonly [string, unknown, ReadonlyArray<number>]>
] = [
  ["tools/call", { name: "no_such_tool", arguments: {} }, [-32602]],
  ["tools/call", { name: 7 }, [-32602, -32600]],
  ["tools/call", { name: "query", arguments: [] }, [-32602, -32600]],
  ["tools/call", undefined, [-32602, -32600]],
  ["no/such/method", {}, [-32601]],
  ["ping", undefined, []],
  ["tools/list", {}, []]
]

export const all: readonly [Fault, ...ReadonlyArray<Fault>] = [
  fault(
    "kill a child",
    8,
    onChild((pid) => signal(pid, "SIGKILL"))
  ),
  fault(
    "freeze a child",
    4,
    onChild((pid, { random }) =>
      during(random.int(300, 2500), signal(pid, "SIGSTOP"), signal(pid, "SIGCONT"))
    )
  ),
  fault(
    "drop connections",
    8,
    onNetwork(({ proxy }) => Effect.sync(proxy.drop))
  ),
  fault(
    "refuse connections",
    4,
    onNetwork(({ proxy }, { random }) =>
      during(random.int(200, 2000), proxy.refuse(true), proxy.refuse(false))
    )
  ),
  fault(
    "stall the network",
    4,
    onNetwork(({ proxy }, { random }) =>
      during(
        random.int(200, 2500),
        Effect.sync(() => proxy.stall(true)),
        Effect.sync(() => proxy.stall(false))
      )
    )
  ),
  fault(
    "corrupt the network",
    2,
    onNetwork(({ id, proxy }, { allow, random }) =>
      Effect.sync(() => {
        // What a driver makes of bytes that no engine sent cannot be foreseen.
        allow(id, ["internal_error", "query_failed/engine_error"])
        const bytes = Buffer.alloc(random.int(1, 64))
        for (let at = 0; at < bytes.length; at++) bytes[at] = random.int(0, 255)
        proxy.corrupt(bytes)
      })
    )
  ),
  fault(
    "end sessions",
    8,
    onNetwork(({ endSessions }) => endSessions)
  ),
  fault(
    "cancel backends",
    4,
    onPostgres((source, { allow }) => {
      // Somebody else's cancellation is like any error of the engine.
      allow(source.id, ["query_failed/engine_error"])
      return asAdmin(source, [
        `select pg_cancel_backend(pid) from pg_stat_activity where usename = '${source.login}' and state = 'active'`
      ])
    })
  ),
  fault("restart the server", 1, ({ random, world }) =>
    Effect.uninterruptible(world.restartPostgres(random.pick(["fast", "immediate"])))
  ),
  fault(
    "lock a table",
    3,
    onPostgres((source, { random }) =>
      asAdmin(source, [
        "begin",
        "lock table items in access exclusive mode",
        `select pg_sleep(${random.int(300, 2500) / 1000})`,
        "rollback"
      ])
    )
  ),
  fault(
    "fill the pool",
    2,
    onPostgres((source, { random }) =>
      Effect.promise(async () => {
        const clients = Array.from({ length: 24 }, () => new pg.Client({ connectionString: source.admin }))
        for (const client of clients) client.on("error", () => {})
        await Promise.all(clients.map((client) => client.connect().catch(() => {})))
        await new Promise((resolve) => setTimeout(resolve, random.int(200, 1500)))
        await Promise.all(clients.map((client) => client.end().catch(() => {})))
      })
    )
  ),
  fault(
    "remove a file",
    4,
    onFile((source, { random }) =>
      during(
        random.int(100, 1500),
        Effect.sync(() => renameSync(source.file, `${source.file}.gone`)),
        restore(source)
      )
    )
  ),
  fault(
    "damage a file",
    3,
    onFile((source, { allow, random }) =>
      during(
        random.int(100, 1500),
        Effect.sync(() => {
          const bytes = readFileSync(source.intact)
          // A part of a text is a text, and a part of a database is one until the rest of it is asked for.
          if (source.engine === "sqlite")
            allow(source.id, ["query_failed/engine_error", "query_failed/unknown_table"])
          if (source.engine === "csv") allow(source.id, ["query_failed/unknown_column"])
          const broken =
            source.engine !== "csv" && random.chance(0.5)
              ? bytes.subarray(0, random.int(0, bytes.length))
              : Buffer.concat([Buffer.from([0, 255, 254, 0, 0, 255]), bytes.subarray(16)])
          writeFileSync(`${source.file}.new`, broken)
          renameSync(`${source.file}.new`, source.file)
        }),
        restore(source)
      )
    )
  ),
  fault(
    "touch a file",
    3,
    onFile(({ file }) =>
      Effect.sync(() => {
        try {
          utimesSync(file, new Date(), new Date())
        } catch {
          // It is away.
        }
      })
    )
  ),
  fault("lock a file", 3, ({ random, world }) =>
    Effect.suspend(() => {
      const source = world.files.find(({ engine }) => engine === "sqlite")
      if (source === undefined) return Effect.void
      return Effect.acquireUseRelease(
        Effect.sync(() => {
          try {
            const database = new Driver(source.file, { timeout: 0, fileMustExist: true })
            try {
              database.exec("begin exclusive")
            } catch {
              // Somebody is reading it just now.
            }
            return database
          } catch {
            return undefined
          }
        }),
        () => Effect.sleep(random.int(200, 2500)),
        (database) => Effect.sync(() => database?.close())
      )
    })
  ),
  fault("send garbage", 8, ({ client, random }) =>
    Effect.sync(() => {
      for (let count = random.int(1, 6); count > 0; count--) {
        const [line, answers] = random.pick(garbage)
        client.sendRaw(`${line}\n`, answers)
      }
    })
  ),
  fault("send bytes", 2, ({ client, random }) =>
    Effect.sync(() => {
      const bytes = Buffer.alloc(random.int(1, 200))
      // No line break and nothing that could be read as JSON.
      for (let at = 0; at < bytes.length; at++) bytes[at] = random.int(128, 255)
      client.sendRaw(Buffer.concat([bytes, Buffer.from("\n")]), 1)
    })
  ),
  fault("send a huge line", 1, ({ client, random }) =>
    Effect.sync(() => client.sendRaw(`${" ".repeat(4)}${"x".repeat(random.int(17, 20) * 2 ** 20)}\n`, 1))
  ),
  fault("ask oddly", 6, ({ client, random }) =>
    Effect.sync(() => {
      for (let count = random.int(1, 5); count > 0; count--) {
        const [method, params, errorCodes] = random.pick(oddRequests)
        client.ask(method, params, { errorCodes })
      }
    })
  ),
  fault("use an id twice", 3, ({ client, nonce, random, targets }) =>
    Effect.sync(() => {
      const call = quick(random.pick(targets), targets.length > 1, nonce())
      const id = random.pick<string | number>([`twice-${nonce()}`, 0, -1])
      if (client.asked.has(id)) return
      for (let count = 0; count < 2; count++)
        client.ask(
          "tools/call",
          { name: call.tool, arguments: call.arguments },
          { id, call, deadlineMs: capMs }
        )
    })
  ),
  fault("stop reading", 4, ({ client, random }) =>
    during(random.int(300, 2500), Effect.sync(client.pause), Effect.sync(client.resume))
  ),
  fault("overload", 2, ({ client, nonce, random, targets }) =>
    Effect.sync(() => {
      const target = random.pick(targets)
      for (let count = random.int(100, 500); count > 0; count--) {
        const call = quick(target, targets.length > 1, nonce())
        client.ask("tools/call", { name: call.tool, arguments: call.arguments }, { call, deadlineMs: capMs })
      }
    })
  ),
  fault("stall the server", 1, ({ client, random }) =>
    Effect.suspend(() => {
      const pause = during(random.int(100, 800), signal(client.pid, "SIGSTOP"), signal(client.pid, "SIGCONT"))
      // A process that stands still answers nothing: the same as a client that does not read.
      return Effect.acquireUseRelease(
        Effect.sync(client.pause),
        () => pause,
        () => Effect.sync(client.resume)
      )
    })
  )
]
