/** What a server's process holds, from outside and, through a small preloaded module, from inside. */
import { readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import type { Scope } from "effect/Scope"
import { childrenOf } from "../support/Process.js"

/**
 * Answers SIGUSR2 with a file: memory after a collection, what keeps the event loop busy, and how many listeners the
 * process, its standard streams, its child processes and its sockets have.
 */
const probe = (file: string) => `
import { renameSync, writeFileSync } from "node:fs"
const file = ${JSON.stringify(file)}
const countOf = (emitter) => typeof emitter.eventNames !== "function" ? 0 : emitter.eventNames().reduce((sum, name) => sum + emitter.listenerCount(name), 0)
process.on("SIGUSR2", () => setImmediate(() => {
  globalThis.gc(); globalThis.gc()
  const resources = {}
  for (const name of process.getActiveResourcesInfo()) resources[name] = (resources[name] ?? 0) + 1
  const listeners = { process: countOf(process) }
  for (const name of ["stdin", "stdout", "stderr"]) listeners[name] = countOf(process[name])
  // Whatever else is alive: at most so many on any one of a kind.
  for (const handle of process._getActiveHandles()) {
    const name = "any " + handle.constructor.name
    listeners[name] = Math.max(listeners[name] ?? 0, countOf(handle))
  }
  writeFileSync(file + ".part", JSON.stringify({ resources, listeners, memory: process.memoryUsage() }))
  renameSync(file + ".part", file)
}))
`

export interface Held {
  readonly children: number
  readonly descriptors: number
  readonly timers: number
  /** By emitter: the process, its streams, and the most on any one child or socket. */
  readonly listeners: Readonly<Record<string, number>>
  readonly heapMB: number
  readonly rssMB: number
}

export interface Inspector {
  readonly nodeArguments: ReadonlyArray<string>
  readonly look: (pid: number) => Effect.Effect<Held>
}

const descriptorsOf = (pid: number) => {
  try {
    return readdirSync(`/proc/${pid}/fd`).filter((name) => {
      try {
        return !/anon_inode|\/dev\/null/.test(readlinkSync(`/proc/${pid}/fd/${name}`))
      } catch {
        return false
      }
    }).length
  } catch {
    return 0
  }
}

interface Probed {
  readonly resources: Record<string, number>
  readonly listeners: Record<string, number>
  readonly memory: { readonly heapUsed: number; readonly rss: number }
}

export const make = (folder: string): Inspector => {
  const script = join(folder, "probe.mjs")
  const answer = join(folder, "probe.json")
  writeFileSync(script, probe(answer))
  const read = (): Probed | undefined => {
    try {
      return JSON.parse(readFileSync(answer, "utf8"))
    } catch {
      return undefined
    }
  }
  return {
    nodeArguments: ["--expose-gc", "--import", script],
    look: (pid) =>
      Effect.gen(function* () {
        rmSync(answer, { force: true })
        process.kill(pid, "SIGUSR2")
        let seen = read()
        for (let wait = 0; seen === undefined && wait < 200; wait++) {
          yield* Effect.sleep(20)
          seen = read()
        }
        return {
          children: childrenOf(pid).length,
          descriptors: descriptorsOf(pid),
          timers: seen?.resources["Timeout"] ?? 0,
          listeners: seen?.listeners ?? {},
          heapMB: Math.round((seen?.memory.heapUsed ?? 0) / 1e5) / 10,
          rssMB: Math.round((seen?.memory.rss ?? 0) / 1e5) / 10
        }
      })
  }
}

/**
 * Time that the machine, and not the server, took: how long this process' event loop stood still, and how long the
 * server's main thread was ready to run and had no processor.
 */
export interface Starvation {
  readonly between: (from: number, to: number) => number
}

/** Milliseconds in which the thread waited for a processor, where the system tells. */
const waitedMs = (pid: number): number => {
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, "latin1").split(" ")[1]) / 1e6
  } catch {
    return Number.NaN
  }
}

const sampleMs = 50

export const starvation = (pid: number): Effect.Effect<Starvation, never, Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => {
        const samples: Array<{ readonly from: number; readonly to: number; readonly ms: number }> = []
        let from = performance.now()
        let waited = waitedMs(pid)
        const timer = setInterval(() => {
          const to = performance.now()
          const now = waitedMs(pid)
          const lag = to - from - sampleMs
          const ms = Math.max(lag > 100 ? lag : 0, Number.isNaN(now - waited) ? 0 : now - waited)
          if (ms > 1) samples.push({ from, to, ms })
          from = to
          waited = now
        }, sampleMs)
        return { samples, timer }
      }),
      ({ timer }) => Effect.sync(() => clearInterval(timer))
    ),
    ({ samples }) => ({
      between: (from, to) =>
        samples.reduce((sum, sample) => (sample.to >= from && sample.from <= to ? sum + sample.ms : sum), 0)
    })
  )
