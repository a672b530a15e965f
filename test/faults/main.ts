/**
 * The fault campaign: rounds of calls and faults on the built server with all engines that are there.
 *
 *   npm run faults -- --minutes 10 --seed 7     rounds until the time is over
 *   npm run faults -- --seed 7 --round 12       one round again
 *   npm run faults -- --soak 100000             very many calls on one server
 */
import { parseArgs } from "node:util"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Oracle from "./Oracle.js"
import * as Random from "./Random.js"
import * as Round from "./Round.js"
import * as Soak from "./Soak.js"
import * as World from "./World.js"

const { values } = parseArgs({
  options: {
    minutes: { type: "string" },
    seconds: { type: "string" },
    seed: { type: "string" },
    round: { type: "string" },
    soak: { type: "string" }
  }
})

const seed = values.seed ?? String(Math.floor(Math.random() * 1e9))
const wantedMs =
  values.minutes === undefined ? Number(values.seconds ?? 60) * 1000 : Number(values.minutes) * 60_000
const maxShown = 25

const say = (text: string) => void process.stdout.write(`${text}\n`)

const table = (title: string, counts: ReadonlyMap<string, number>) => {
  say(`\n${title}`)
  for (const [name, count] of [...counts].sort(([, a], [, b]) => b - a))
    say(`  ${String(count).padStart(8)}  ${name}`)
}

const tell = (violations: ReadonlyArray<string>) => {
  for (const violation of violations.slice(0, maxShown)) say(`  VIOLATION ${violation}`)
  if (violations.length > maxShown) say(`  and ${violations.length - maxShown} more`)
}

const merge = (into: Map<string, number>, from: ReadonlyMap<string, number>) => {
  for (const [name, count] of from) Round.count(into, name, count)
}

const campaign = (world: World.World) =>
  Effect.gen(function* () {
    const root = Random.make(seed)
    const only = values.round === undefined ? undefined : Number(values.round)
    const [faults, answers, calls] = [
      new Map<string, number>(),
      new Map<string, number>(),
      new Map<string, number>()
    ]
    const failing: Array<number> = []
    let [requests, cancelled, retried, violations, rounds, latestMs, latestByClockMs] = [0, 0, 0, 0, 0, 0, 0]
    const end = performance.now() + wantedMs
    for (
      let round = only ?? 1;
      only === undefined ? round === 1 || performance.now() < end : round === only;
      round++
    ) {
      const random = root.fork(`round ${round}`)
      const ms = random.int(6000, 16_000)
      const report = yield* Round.run(world, random, { name: `r${round}`, ms })
      rounds++
      requests += report.requests
      cancelled += report.cancelled
      retried += report.retried
      latestMs = Math.max(latestMs, report.latestMs)
      latestByClockMs = Math.max(latestByClockMs, report.latestByClockMs)
      merge(faults, report.faults)
      merge(answers, report.answers)
      merge(calls, report.calls)
      violations += report.violations.length
      const total = [...report.faults.values()].reduce((sum, count) => sum + count, 0)
      say(
        `round ${round}: ${report.requests} requests, ${total} faults, ended by ${report.end}, ${report.violations.length} violations`
      )
      if (report.violations.length > 0) {
        failing.push(round)
        tell(report.violations)
        say(`  again: npm run faults -- --seed ${seed} --round ${round}`)
      }
    }
    table("Faults", faults)
    table("Calls", calls)
    table("Answers", answers)
    say(
      `\nseed ${seed}: ${rounds} rounds, ${requests} requests, ${cancelled} cancelled, ${retried} retried by the server\n` +
        `latest answer ${Math.round(latestMs)} ms after its deadline, ${Oracle.slackMs} ms allowed, without the time in which client or ` +
        `machine held it up (with it: ${Math.round(latestByClockMs)} ms)`
    )
    say(`${violations} violations${failing.length > 0 ? ` in rounds ${failing.join(", ")}` : ""}`)
    return violations === 0
  })

const soak = (world: World.World, calls: number) =>
  Effect.gen(function* () {
    const report = yield* Soak.run(world, Random.make(seed), { calls, say })
    table("Answers", report.answers)
    tell(report.violations)
    say(
      `\nseed ${seed}: ${report.calls} calls in ${report.seconds} s, resident memory ${report.growthPercent} % after the first 10,000`
    )
    say(`${report.violations.length} violations`)
    return report.violations.length === 0
  })

const program = Effect.scoped(
  Effect.gen(function* () {
    say(`seed ${seed}`)
    const world = yield* World.make
    say(
      `engines: ${Round.targetsOf(world)
        .map(({ engine }) => engine)
        .join(", ")}`
    )
    return yield* values.soak === undefined ? campaign(world) : soak(world, Number(values.soak))
  })
)

// Whoever stops a campaign leaves no engine behind.
process.removeAllListeners("SIGINT").removeAllListeners("SIGTERM")
const running = Effect.runFork(program)
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => Effect.runFork(Fiber.interrupt(running)))
const exit = await Effect.runPromise(Fiber.await(running))
if (Exit.isFailure(exit)) say(Cause.pretty(exit.cause))
process.exit(Exit.isSuccess(exit) && exit.value ? 0 : 1)
