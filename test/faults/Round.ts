/** One life of a server: calls and faults at the same time, then quiet, then an end; and what must hold of it. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { childrenOf, isAlive } from "../support/Process.js"
import { capMs, draw, type Outcome, quick, type Target } from "./Calls.js"
import * as Client from "./Client.js"
import * as Faults from "./Faults.js"
import * as Inspect from "./Inspect.js"
import * as Oracle from "./Oracle.js"
import type { Random } from "./Random.js"
import { restore, type World } from "./World.js"

export interface RoundReport {
  readonly requests: number
  readonly faults: ReadonlyMap<string, number>
  readonly answers: ReadonlyMap<string, number>
  readonly calls: ReadonlyMap<string, number>
  readonly cancelled: number
  readonly retried: number
  /** Beyond the deadline: without the time in which client or machine held the answer up, and by the clock alone. */
  readonly latestMs: number
  readonly latestByClockMs: number
  readonly end: string
  readonly violations: ReadonlyArray<string>
}

export const count = (map: Map<string, number>, key: string, by = 1): void =>
  void map.set(key, (map.get(key) ?? 0) + by)

export const targetsOf = ({ files, networks }: World): ReadonlyArray<Target> =>
  [...files, ...networks].map(({ engine, id }) => ({ id, engine }))

/** The configuration of a server; secrets come from its environment. */
export const configure = (
  world: World,
  folder: string,
  settings: {
    readonly ids: ReadonlyArray<string>
    readonly logFile: string | null
    readonly structuredContent: boolean
    readonly limits: Record<string, number>
  }
): { readonly file: string; readonly environment: Record<string, string> } => {
  const environment: Record<string, string> = {}
  const sources: Record<string, unknown> = {}
  for (const { engine, file, id } of world.files)
    if (settings.ids.includes(id)) sources[id] = { engine, file }
  for (const { engine, id, url } of world.networks) {
    if (!settings.ids.includes(id)) continue
    environment[`URL_${id.toUpperCase()}`] = url
    sources[id] = { engine, url: `\${URL_${id.toUpperCase()}}` }
  }
  const file = join(folder, "config.json")
  writeFileSync(
    file,
    JSON.stringify({
      sources,
      limits: settings.limits,
      log: { level: "info", file: settings.logFile },
      structuredContent: settings.structuredContent
    })
  )
  return { file, environment }
}

export const initialize = (client: Client.Client) =>
  Effect.gen(function* () {
    const hello = client.ask(
      "initialize",
      { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "faults", version: "1" } },
      { deadlineMs: 5000 }
    )
    yield* client.answered(hello)
    client.sendRaw(`${JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" })}\n`, 0)
  })

/** Waits until `look` is true; false when it takes longer than that. */
const within = (ms: number, look: Effect.Effect<boolean>): Effect.Effect<boolean> =>
  Effect.gen(function* () {
    const end = performance.now() + ms
    while (performance.now() < end) {
      if (yield* look) return true
      yield* Effect.sleep(50)
    }
    return yield* look
  })

export const run = (
  world: World,
  random: Random,
  options: { readonly name: string; readonly ms: number }
): Effect.Effect<RoundReport> =>
  Effect.scoped(
    Effect.gen(function* () {
      const violations: Array<string> = []
      const folder = join(world.folder, options.name)
      mkdirSync(folder)
      yield* Effect.forEach(world.files, (source) => restore(source))

      // --- A server --------------------------------------------------------------------------------------------------
      const available = targetsOf(world)
      const single = random.chance(0.15)
      const chosen = single ? [random.pick([available[0] ?? noSource(), ...available.slice(1)])] : available
      const targets: readonly [Target, ...ReadonlyArray<Target>] = [
        chosen[0] ?? noSource(),
        ...chosen.slice(1)
      ]
      const several = targets.length > 1
      const structuredContent = random.chance(0.7)
      const logFile = random.chance(0.4) ? join(folder, "calls.jsonl") : null
      const maxConcurrent = random.pick([1, 2, 4])
      const { environment, file } = configure(world, folder, {
        ids: targets.map(({ id }) => id),
        logFile,
        structuredContent,
        limits: {
          maxRows: 500,
          maxBytes: random.pick([20_000, 100_000, 400_000]),
          timeoutMs: capMs,
          connectTimeoutMs: 2000,
          maxConcurrent
        }
      })
      const inspector = Inspect.make(folder)
      const inStdout = Oracle.searcher([...world.secrets, ...world.confidential], (text) =>
        violations.push(`stdout holds ${JSON.stringify(text)}`)
      )
      const inStderr = Oracle.searcher(world.secrets, (text) =>
        violations.push(`stderr holds ${JSON.stringify(text)}`)
      )
      const client = yield* Client.make({
        nodeArguments: inspector.nodeArguments,
        serverArguments: ["--config", file],
        environment,
        listen: (bytes, stream) => (stream === "stdout" ? inStdout(bytes) : inStderr(bytes))
      })
      const starved = yield* Inspect.starvation(client.pid)
      yield* initialize(client)

      const allowed = new Map<string, Set<Outcome>>()
      const allow = (id: string, outcomes: ReadonlyArray<Outcome>) =>
        void allowed.set(id, new Set([...(allowed.get(id) ?? []), ...outcomes]))
      let serial = 0
      const nonce = () => `${options.name}-${++serial}`

      // --- Warm, and what it then holds ------------------------------------------------------------------------------
      const probeAll = (tries: number) =>
        Effect.forEach(
          targets,
          (target) =>
            Effect.gen(function* () {
              for (let attempt = 1; ; attempt++) {
                const call = quick(target, several, nonce())
                const asked = client.ask(
                  "tools/call",
                  { name: call.tool, arguments: call.arguments },
                  { call, deadlineMs: capMs }
                )
                yield* Effect.timeoutOption(client.answered(asked), capMs + 3000)
                const [answer] = asked.answers
                if (answer !== undefined && !("isError" in Object(answer.message["result"]))) return
                if (attempt >= tries) {
                  violations.push(
                    `${target.id} does not recover: ${JSON.stringify(answer?.message ?? "no answer").slice(0, 400)}`
                  )
                  return
                }
                yield* Effect.sleep(500)
              }
            }),
          { concurrency: "unbounded" }
        )
      yield* probeAll(3)
      const before = yield* inspector.look(client.pid)

      // --- Calls and faults ------------------------------------------------------------------------------------------
      const faults = new Map<string, number>()
      const lanes = random.int(6, 16)
      const stopAt = performance.now() + options.ms
      const lane = (stream: Random) =>
        Effect.gen(function* () {
          while (performance.now() < stopAt && !client.hasExited()) {
            const call = draw(stream, targets, nonce())
            const cancels = stream.chance(0.12)
            const patience = stream.int(0, 400)
            const asked = client.ask(
              "tools/call",
              { name: call.tool, arguments: call.arguments },
              { call, deadlineMs: call.timeoutMs }
            )
            if (cancels) {
              yield* Effect.timeoutOption(client.answered(asked), patience)
              if (asked.answers.length === 0) client.cancel(asked)
            } else yield* Effect.timeoutOption(client.answered(asked), call.timeoutMs + 6000)
            yield* Effect.sleep(stream.int(0, 30))
          }
        })
      const scene: Faults.Scene = { world, client, targets, random: random.fork("faults"), allow, nonce }
      const injector = Effect.gen(function* () {
        while (performance.now() < stopAt) {
          yield* Effect.sleep(scene.random.int(20, 700))
          const [first, ...rest] = Faults.all
          const { inject, kind } = scene.random.weighted([
            [first.weight, first],
            ...rest.map((other) => [other.weight, other] as const)
          ])
          count(faults, kind)
          yield* Effect.forkScoped(Effect.scoped(inject(scene)))
        }
      })
      yield* Effect.scoped(
        Effect.gen(function* () {
          const working = yield* Effect.fork(
            Effect.all(
              Array.from({ length: lanes }, (_, index) => lane(random.fork(`lane ${index}`))),
              { concurrency: "unbounded", discard: true }
            )
          )
          yield* injector
          yield* Fiber.join(working)
        })
      )

      // --- Quiet: everything heals, everything is answered -----------------------------------------------------------
      yield* Effect.forEach(world.files, (source) => restore(source))
      for (const { proxy } of world.networks) {
        yield* proxy.refuse(false)
        proxy.stall(false)
      }
      if (client.hasExited()) violations.push("the server has ended")
      const open = () =>
        [...client.asked.values()].filter(
          ({ answers, cancelledAt, wanted }) => cancelledAt === undefined && answers.length < wanted
        )
      yield* within(
        capMs + 4000,
        Effect.sync(() => open().length === 0 || client.hasExited())
      )
      yield* probeAll(6)
      const settled = yield* within(
        6000,
        Effect.sync(() => childrenOf(client.pid).length <= before.children + maxConcurrent + 1)
      )
      if (!settled)
        violations.push(`${childrenOf(client.pid).length} children are left, ${before.children} at the start`)
      const networks = world.networks.filter(({ id }) => targets.some((target) => target.id === id))
      for (const { engine, id, sessions } of networks) {
        // The adapter for SQL Server has two in reserve, and one that an interrupted call had begun.
        const most = maxConcurrent + (engine === "mssql" ? 3 : 0)
        const few = yield* within(
          6000,
          Effect.map(sessions, (left) => left <= most)
        )
        if (!few) violations.push(`${yield* sessions} sessions of ${id} are left, ${most} at most may be`)
      }
      const after = yield* inspector.look(client.pid)
      if (after.descriptors > before.descriptors + (3 + 4 * networks.length) * (maxConcurrent + 1))
        violations.push(`${after.descriptors} descriptors are left, ${before.descriptors} at the start`)
      if (after.timers > before.timers + 10)
        violations.push(`${after.timers} timers are left, ${before.timers} at the start`)
      for (const [name, many] of Object.entries(after.listeners)) {
        // One that is just being made has some more, and so has a kind of which there was none at the start.
        const most = name.startsWith("any ")
          ? Math.max(12, (before.listeners[name] ?? 0) + 8)
          : (before.listeners[name] ?? 0)
        if (many > most) violations.push(`${many} listeners are left on ${name}, ${most} at the start`)
      }
      if (after.heapMB > before.heapMB + 24)
        violations.push(`the heap holds ${after.heapMB} MB, ${before.heapMB} MB at the start`)

      // --- The end ---------------------------------------------------------------------------------------------------
      const ending = random.fork("end")
      const end = ending.pick([
        "stdin ends",
        "stdin ends busy",
        "SIGTERM",
        "SIGINT",
        "SIGTERM busy",
        "SIGKILL busy"
      ])
      const late = new Set<Client.Asked>()
      if (end.endsWith("busy"))
        for (let calls = 6; calls > 0; calls--) {
          const call = draw(ending, targets, nonce())
          late.add(
            client.ask(
              "tools/call",
              { name: call.tool, arguments: call.arguments },
              { call, deadlineMs: call.timeoutMs }
            )
          )
        }
      // Requests have reached the server when a later one is answered.
      if (late.size > 0) yield* Effect.timeoutOption(client.answered(client.ask("ping", undefined)), 3000)
      const children = childrenOf(client.pid)
      const endsAt = performance.now()
      if (end.startsWith("stdin")) client.endInput()
      else
        client.signal(end.startsWith("SIGTERM") ? "SIGTERM" : end.startsWith("SIGINT") ? "SIGINT" : "SIGKILL")
      const killed = end.startsWith("SIGKILL")
      const exit = yield* Effect.timeoutOption(client.exit, 8000)
      const tookMs = performance.now() - endsAt - starved.between(endsAt, performance.now())
      if (exit._tag === "None") violations.push(`the server does not end (${end})`)
      else if (!killed && exit.value.code !== 0)
        violations.push(`the server ended with ${exit.value.code ?? exit.value.signal} (${end})`)
      else if (tookMs > 6000) violations.push(`the server took ${Math.round(tookMs)} ms to end (${end})`)
      const reaped = yield* within(
        3000,
        Effect.sync(() => !children.some(isAlive))
      )
      if (!reaped) violations.push(`${children.filter(isAlive).length} children outlive the server (${end})`)
      for (const { id, sessions } of world.networks) {
        // An engine that does not look after its clients learns of their end when the statement is over.
        const closed = yield* within(
          capMs + 6000,
          Effect.map(sessions, (left) => left === 0)
        )
        if (!closed) violations.push(`${yield* sessions} sessions of ${id} outlive the server (${end})`)
      }

      // --- Judgement -------------------------------------------------------------------------------------------------
      violations.push(...client.faults)
      const answers = new Map<string, number>()
      const calls = new Map<string, number>()
      const judged = new Map<Client.Asked, ReadonlyArray<Oracle.Judgement>>()
      const conditions = { structuredContent, faulty: true, allowed }
      let requests = 0
      let cancelled = 0
      let latestMs = 0
      let latestByClockMs = 0
      for (const asked of client.asked.values()) {
        requests += asked.wanted
        count(calls, asked.call?.kind ?? asked.method, asked.wanted)
        const what = `${asked.call === undefined ? asked.method : `${asked.call.kind} on ${asked.call.target?.id ?? "no source"}`} (id ${asked.id})`
        const ours = asked.answers.map((answer) => {
          const judgement = Oracle.judge(asked, answer, conditions)
          violations.push(...judgement.violations.map((violation) => `${what}: ${violation}`))
          count(answers, judgement.outcome)
          const lateMs =
            Oracle.lateMs(asked, answer.at, client.stalls) - starved.between(asked.sentAt, answer.at)
          latestMs = Math.max(latestMs, lateMs + Oracle.slackMs)
          latestByClockMs = Math.max(latestByClockMs, answer.at - asked.sentAt - asked.deadlineMs)
          if (lateMs > 0)
            violations.push(
              `${what}: answered ${Math.round(lateMs)} ms beyond its deadline and slack (after ${Math.round(answer.at - asked.sentAt)} ms, deadline ${asked.deadlineMs} ms)`
            )
          return judgement
        })
        judged.set(asked, ours)
        if (asked.cancelledAt !== undefined) cancelled++
        if (asked.answers.length > asked.wanted)
          violations.push(`${what}: ${asked.answers.length} answers came for ${asked.wanted} requests`)
        else if (asked.answers.length < asked.wanted && asked.cancelledAt === undefined && !killed)
          violations.push(`${what}: no answer came`)
      }
      if (client.nameless.came !== client.nameless.wanted && !killed)
        violations.push(
          `${client.nameless.came} errors without an id came, ${client.nameless.wanted} were to come`
        )
      const log = logFile === null ? client.stderr() : readFileSync(logFile, "utf8").split("\n")
      if (logFile !== null) inStderr(readFileSync(logFile))
      const logged = Oracle.judgeLog(log, client, judged, {
        killed,
        corrupted: [...allowed.values()].some((outcomes) => outcomes.has("internal_error"))
      })
      violations.push(...logged.violations)
      return {
        requests: requests + client.nameless.wanted,
        faults,
        answers,
        calls,
        cancelled,
        retried: logged.attempts,
        latestMs,
        latestByClockMs,
        end,
        violations
      }
    })
  )

export const noSource = (): never => {
  throw new Error("There is no source.")
}
