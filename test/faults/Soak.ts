/** Very many calls on one server: its memory does not grow with them. */
import { createReadStream, mkdirSync } from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"
import * as Effect from "effect/Effect"
import { draw, type Target } from "./Calls.js"
import * as Client from "./Client.js"
import * as Inspect from "./Inspect.js"
import * as Oracle from "./Oracle.js"
import type { Random } from "./Random.js"
import * as Round from "./Round.js"
import { restore, type World } from "./World.js"

export interface SoakReport {
  readonly calls: number
  readonly seconds: number
  readonly answers: ReadonlyMap<string, number>
  /** Memory in MB by the number of calls, after a collection. */
  readonly memory: ReadonlyArray<{
    readonly calls: number
    readonly residentMB: number
    readonly heapMB: number
  }>
  readonly growthPercent: number
  readonly violations: ReadonlyArray<string>
}

const lanes = 4
const early = 10_000
const mostGrowthPercent = 10

const countLines = (file: string, found: (line: string) => void) =>
  Effect.promise(async () => {
    for await (const line of createInterface({ input: createReadStream(file) })) found(line)
  })

export const run = (
  world: World,
  random: Random,
  { calls, say }: { readonly calls: number; readonly say: (text: string) => void }
): Effect.Effect<SoakReport> =>
  Effect.scoped(
    Effect.gen(function* () {
      const folder = join(world.folder, "soak")
      mkdirSync(folder)
      yield* Effect.forEach(world.files, (source) => restore(source))
      const [first, ...rest] = Round.targetsOf(world)
      const targets: readonly [Target, ...ReadonlyArray<Target>] = [first ?? Round.noSource(), ...rest]
      const logFile = join(folder, "calls.jsonl")
      const { environment, file } = Round.configure(world, folder, {
        ids: targets.map(({ id }) => id),
        logFile,
        structuredContent: true,
        limits: { maxRows: 100, maxBytes: 20_000, timeoutMs: 4000, maxConcurrent: 4 }
      })
      const violations: Array<string> = []
      const inspector = Inspect.make(folder)
      const client = yield* Client.make({
        nodeArguments: inspector.nodeArguments,
        serverArguments: ["--config", file],
        environment,
        listen: Oracle.searcher(world.secrets, (text) =>
          violations.push(`a stream holds ${JSON.stringify(text)}`)
        )
      })
      yield* Round.initialize(client)

      const answers = new Map<string, number>()
      const memory: Array<SoakReport["memory"][number]> = []
      const conditions = { structuredContent: true, faulty: false, allowed: new Map() }
      const from = performance.now()
      let begun = 0
      let done = 0
      const measure = Effect.gen(function* () {
        const calls = done
        const { heapMB, rssMB } = yield* inspector.look(client.pid)
        memory.push({ calls, residentMB: rssMB, heapMB })
        say(
          `${calls} calls, ${rssMB} MB resident, ${heapMB} MB of heap, ${Math.round((performance.now() - from) / 1000)} s`
        )
      })
      const lane = (stream: Random, name: string) =>
        Effect.gen(function* () {
          while (begun < calls && !client.hasExited()) {
            const call = draw(stream, targets, `${name}-${++begun}`)
            // They take their time and nothing else.
            if (call.kind === "runaway" || call.kind === "hungry") {
              begun--
              continue
            }
            const asked = client.ask(
              "tools/call",
              { name: call.tool, arguments: call.arguments },
              { call, deadlineMs: call.timeoutMs }
            )
            yield* Effect.timeoutOption(client.answered(asked), call.timeoutMs + 3000)
            const [answer] = asked.answers
            if (answer === undefined) violations.push(`${call.kind}: no answer came`)
            else {
              const judgement = Oracle.judge(asked, answer, conditions)
              violations.push(...judgement.violations.map((violation) => `${call.kind}: ${violation}`))
              Round.count(answers, judgement.outcome)
            }
            client.forget(asked)
            done++
            if (done === early || done % Math.max(early, Math.floor(calls / 10)) === 0) yield* measure
          }
        })
      yield* Effect.all(
        Array.from({ length: lanes }, (_, index) => lane(random.fork(`lane ${index}`), `soak-${index}`)),
        { concurrency: "unbounded", discard: true }
      )
      yield* measure
      client.endInput()
      yield* Effect.timeoutOption(client.exit, 8000)
      violations.push(...client.faults)
      let logged = 0
      yield* countLines(logFile, (line) => {
        if (line.includes('"event":"tool_call"')) logged++
      })
      if (logged !== done) violations.push(`the log has ${logged} calls, ${done} were made`)
      const earlyMB = memory.find(({ calls: at }) => at >= Math.min(early, calls))?.residentMB ?? 0
      const lateMB = memory.at(-1)?.residentMB ?? 0
      const growthPercent = Math.round((lateMB / earlyMB - 1) * 1000) / 10
      if (growthPercent >= mostGrowthPercent)
        violations.push(`resident memory grew by ${growthPercent} % after the first ${early} calls`)
      return {
        calls: done,
        seconds: Math.round((performance.now() - from) / 1000),
        answers,
        memory,
        growthPercent,
        violations
      }
    })
  )
