/**
 * A pool of child processes that run statements. SQLite cannot be interrupted from outside in every place, so a
 * statement is stopped by ending its process; the pool keeps a warm one in reserve.
 */
import { type ChildProcess, fork } from "node:child_process"
import { existsSync } from "node:fs"
import { constants } from "node:os"
import { fileURLToPath } from "node:url"
import * as Effect from "effect/Effect"
import type { Scope } from "effect/Scope"
import { ConnectionFailed, connectionMessage, QueryFailed } from "../../QueryError.js"
import * as ResourcePool from "../ResourcePool.js"
import type { Reply, StatementRequest } from "./Protocol.js"

export interface ChildPoolOptions {
  /** The built program's name, say `SqliteChild`. */
  readonly program: string
  /** The first message of each child. */
  readonly setup: unknown
  /** How many statements may run at once, one in each child. */
  readonly size: number
  /** Whether a child beyond those in use is kept ready. */
  readonly spare: boolean
  /** Bound of the child's JavaScript heap, in MiB. */
  readonly heapMiB: number
}

export interface ChildPool {
  /** Runs a statement in a free child. Interruption ends that child. */
  readonly run: (
    request: Omit<StatementRequest, "id">
  ) => Effect.Effect<Reply, ConnectionFailed | QueryFailed>
}

/** Beside the bundle, above the library's modules; from the sources, the program that the last build left in `dist`. */
const locate = (program: string): string => {
  for (const place of [
    `./${program}.js`,
    `../${program}.js`,
    `../../${program}.js`,
    `../../../${program}.js`,
    `../../../dist/${program}.js`
  ]) {
    const file = fileURLToPath(new URL(place, import.meta.url))
    if (existsSync(file)) return file
  }
  return fileURLToPath(new URL(`./${program}.js`, import.meta.url))
}

const lost = (cause: unknown) =>
  new ConnectionFailed({ reason: "closed", message: connectionMessage.closed, beforeFirstRow: true, cause })

const outOfMemory = (cause: unknown) =>
  new QueryFailed({
    reason: "resource_limit",
    message: "The statement needs more memory, or more room to sort, than it may have.",
    hint: "Select fewer or smaller values, or aggregate them in the statement.",
    cause
  })

/** What the end of a child means for the statement that it was running. */
const failureOfExit = (
  code: number | null,
  signal: NodeJS.Signals | null
): ConnectionFailed | QueryFailed => {
  const cause = new Error(`The child process ended with ${signal ?? `exit code ${code}`}.`)
  // A JavaScript heap that is exhausted aborts its process.
  return signal === "SIGABRT" || code === 128 + constants.signals.SIGABRT ? outOfMemory(cause) : lost(cause)
}

const spawn = (options: ChildPoolOptions): ChildProcess => {
  const child = fork(locate(options.program), [String(process.pid)], {
    serialization: "advanced",
    // Standard output belongs to the protocol: a child gets none of it.
    stdio: ["ignore", "ignore", "ignore", "ipc"],
    execArgv: [`--max-old-space-size=${options.heapMiB}`, "--max-semi-space-size=2", "--no-warnings"]
  })
  child.on("error", () => {})
  child.send({ setup: options.setup }, () => {})
  return child
}

const isAlive = (child: ChildProcess) =>
  child.exitCode === null && child.signalCode === null && child.connected && !child.killed

const awaitExit = (child: ChildProcess) =>
  Effect.async<void>((resume) => {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null)
      return resume(Effect.void)
    const ended = () => resume(Effect.void)
    child.once("exit", ended)
    return Effect.sync(() => child.off("exit", ended))
  })

const stop = (child: ChildProcess) =>
  Effect.zipRight(
    Effect.sync(() => child.kill("SIGKILL")),
    Effect.timeoutOption(awaitExit(child), "1 second")
  )

const exchange = (child: ChildProcess, request: StatementRequest) =>
  Effect.async<Reply, ConnectionFailed | QueryFailed>((resume) => {
    const settle = (result: Effect.Effect<Reply, ConnectionFailed | QueryFailed>) => {
      child.off("message", onMessage).off("exit", onExit)
      resume(result)
    }
    const onMessage = (reply: Reply) => {
      if (reply.id === request.id) settle(Effect.succeed(reply))
    }
    const onExit = (code: number | null, signal: NodeJS.Signals | null) =>
      settle(Effect.fail(failureOfExit(code, signal)))
    if (!isAlive(child)) return resume(Effect.fail(lost(new Error("The child process is gone."))))
    child.on("message", onMessage).on("exit", onExit)
    child.send({ request }, (error) => {
      if (error) settle(Effect.fail(lost(error)))
    })
    return Effect.sync(() => {
      child.off("message", onMessage).off("exit", onExit)
      child.kill("SIGKILL")
    })
  })

export const make = (options: ChildPoolOptions): Effect.Effect<ChildPool, never, Scope> =>
  Effect.gen(function* () {
    // What ended one child may be ending its siblings, which still look alive: after a loss, only new ones are used.
    let losses = 0
    const lossesAtBirth = new WeakMap<ChildProcess, number>()
    const isFit = (child: ChildProcess) => isAlive(child) && lossesAtBirth.get(child) === losses
    const pool = yield* ResourcePool.make({
      acquire: Effect.sync(() => {
        const child = spawn(options)
        lossesAtBirth.set(child, losses)
        return child
      }),
      close: stop,
      isFit,
      max: options.size + (options.spare ? 1 : 0),
      ready: 1,
      idleTime: "1 minute"
    })
    let lastId = 0
    return {
      run: (request) =>
        Effect.scoped(
          Effect.flatMap(pool.get, (child) =>
            exchange(child, { ...request, id: ++lastId }).pipe(
              Effect.tapErrorTag("ConnectionFailed", () => Effect.sync(() => losses++))
            )
          )
        )
    }
  })
