/** One client, from its first message to its last, on a pair of streams. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { CallLog } from "../CallLog.js"
import * as McpServer from "../McpServer.js"
import type { OutputStream } from "../OutputStream.js"
import { Sources } from "../Sources.js"
import { version } from "../Version.js"
import * as Stdio from "./Stdio.js"

/** How a session is told to end; `why` is for the log. */
export interface Ending {
  /** Calls in flight are answered first. */
  readonly finish: (why: string) => void
  /** At once: nobody is left to take answers. */
  readonly abandon: (why: string) => void
  readonly finished: Deferred.Deferred<string>
  readonly abandoned: Deferred.Deferred<void>
}

export const makeEnding: Effect.Effect<Ending> = Effect.gen(function* () {
  const finished = yield* Deferred.make<string>()
  const abandoned = yield* Deferred.make<void>()
  const finish = (why: string) => Deferred.unsafeDone(finished, Effect.succeed(why))
  return {
    finish,
    abandon: (why) => {
      finish(why)
      Deferred.unsafeDone(abandoned, Effect.void)
    },
    finished,
    abandoned
  }
})

export interface SessionOptions {
  readonly input: NodeJS.ReadableStream
  readonly output: OutputStream
  readonly structuredContent: boolean
  readonly secrets: ReadonlyArray<string>
  /** The end of `input` ends the session, too. */
  readonly ending: Ending
}

/** From the end to the last byte, at most. */
const endMs = 5000
/** The part of it in which calls in flight may still end by themselves. */
const graceMs = 4000

const maxLineBytes = 16 * 2 ** 20
const maxPendingBytes = 4 * 2 ** 20

/** Waits until the reader has taken everything, for at most `withinMs`. */
export const flush = (stream: OutputStream, withinMs: number): Effect.Effect<void> =>
  Effect.asVoid(
    Effect.timeoutOption(
      Effect.async<void>((resume) => stream.onDrained(() => resume(Effect.void))),
      Math.max(0, withinMs)
    )
  )

/** A finalizer cannot be interrupted, and a time limit interrupts: hence a fiber of its own. */
const inFinalizer = <A>(effect: Effect.Effect<A>) =>
  Effect.flatMap(Effect.forkDaemon(Effect.interruptible(effect)), Fiber.join)

/** Serves until the session ends. Interruption ends it in order, too: what is in flight is answered first. */
export const run = (options: SessionOptions): Effect.Effect<void, never, Sources> =>
  Effect.gen(function* () {
    const { ending, input, output, secrets, structuredContent } = options
    const log = yield* CallLog
    const sources = yield* Sources
    const stdio = Stdio.make({
      input,
      output,
      maxLineBytes,
      maxPendingBytes,
      onEnd: () => ending.finish("input ended")
    })
    const server = yield* McpServer.make({ stdio, structuredContent, secrets })
    const close = (why: string) =>
      Effect.gen(function* () {
        const from = performance.now()
        stdio.stop()
        yield* Effect.raceFirst(
          Effect.zipRight(
            server.drain(graceMs),
            Effect.suspend(() => flush(output, endMs - (performance.now() - from)))
          ),
          Deferred.await(ending.abandoned)
        )
        // What is still in flight is stopped: nobody hears of it any more.
        yield* Effect.promise(() => stdio.close())
        yield* log.event("info", "server_stopped", { why })
      })
    const started = log.event("info", "server_started", {
      version,
      node: process.version,
      pid: process.pid,
      sources: sources.all.map(({ engine, id }) => ({ id, engine }))
    })
    // Whatever ends it, also while it starts: the streams are given back.
    yield* server.start.pipe(
      Effect.zipRight(started),
      Effect.zipRight(Deferred.await(ending.finished)),
      Effect.onExit((exit) => inFinalizer(close(Exit.isSuccess(exit) ? exit.value : "interrupted")))
    )
  })
