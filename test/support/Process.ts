/** What the operating system says of processes, and waiting for a condition. */
import { execFileSync } from "node:child_process"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { setTimeout as pause } from "node:timers/promises"

interface Listed {
  readonly pid: number
  readonly parent: number
  /** The first letter of the state: R running, S sleeping, Z ended and not yet reaped. */
  readonly state: string
}

const fromProc = (): ReadonlyArray<Listed> =>
  readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return []
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "latin1")
      const [state = "", parent = ""] = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
      return [{ pid: Number(name), parent: Number(parent), state }]
    } catch {
      // It ended meanwhile.
      return []
    }
  })

const fromPs = (): ReadonlyArray<Listed> =>
  execFileSync("ps", ["-A", "-o", "pid=,ppid=,stat="], { encoding: "utf8" })
    .split("\n")
    .flatMap((line) => {
      const [pid, parent, state] = line.trim().split(/\s+/)
      return state === undefined ? [] : [{ pid: Number(pid), parent: Number(parent), state: state.charAt(0) }]
    })

const all = () => (existsSync("/proc/self/stat") ? fromProc() : fromPs())

const alive = () => all().filter(({ state }) => state !== "Z")

/** The processes that `parent` has started and that have not ended. */
export const childrenOf = (parent: number): ReadonlyArray<number> =>
  alive()
    .filter((listed) => listed.parent === parent)
    .map(({ pid }) => pid)

/** Kills processes and waits until their parents have learnt of it. */
export const killAndWait = async (pids: ReadonlyArray<number>): Promise<void> => {
  for (const pid of pids) process.kill(pid, "SIGKILL")
  await eventually("the killed processes are reaped", () => !all().some(({ pid }) => pids.includes(pid)))
}

/** Whether a process is on a processor, or waiting for one, at this moment. */
export const isBusy = (pid: number): boolean =>
  all().some((listed) => listed.pid === pid && listed.state === "R")

export const isAlive = (pid: number): boolean => alive().some((listed) => listed.pid === pid)

/** Waits until `look` gives something true, and gives it; fails with `what` when that takes absurdly long. */
export const eventually = async <A>(
  what: string,
  look: () => A | Promise<A>,
  withinMs = 30_000
): Promise<NonNullable<A>> => {
  const end = performance.now() + withinMs
  for (;;) {
    const seen = await look()
    if (seen !== undefined && seen !== null && seen !== false && seen !== 0) return seen
    if (performance.now() > end) throw new Error(`Never happened: ${what}`)
    await pause(5)
  }
}
