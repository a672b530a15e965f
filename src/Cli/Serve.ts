/** `mcp-query SOURCE...`: serves over stdio until the client is done or a signal comes. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Logger from "effect/Logger"
import * as Scope from "effect/Scope"
import { currentOwner } from "../Adapter/Owner.js"
import { CallLog, type CallLogService, make as makeLog } from "../CallLog.js"
import type { FatalError } from "../FatalError.js"
import * as Stdio from "../McpServer/Stdio.js"
import * as McpServer from "../McpServer.js"
import * as OutputStream from "../OutputStream.js"
import type { Settings } from "../Settings.js"
import { fromSettings, Sources } from "../Sources.js"
import { version } from "../Version.js"

/** From the end of stdin or a signal to the end of the process, at most. */
const endMs = 5000
/** The part of it in which calls in flight may still end by themselves. */
const graceMs = 4000

/** Connections and child processes may take this long to end. */
const closeMs = 800

const maxLineBytes = 16 * 2 ** 20
const maxPendingBytes = 4 * 2 ** 20

/** Standard output is the protocol's alone: what a dependency prints becomes a line of the log. */
const captureConsole = (log: CallLogService) => {
  const capture = (chunk: unknown): true => {
    const text = (
      typeof chunk === "string" ? chunk : Buffer.from(chunk as Uint8Array).toString("utf8")
    ).trim()
    if (text !== "") log.unsafeEvent("debug", "message", { text })
    return true
  }
  process.stdout.write = capture
  process.stderr.write = capture
}

const logEffects = (log: CallLogService) =>
  Logger.replace(
    Logger.defaultLogger,
    Logger.make(({ logLevel, message }) =>
      log.unsafeEvent("debug", "message", { logLevel: logLevel.label, message })
    )
  )

const flush = (stream: OutputStream.OutputStream, withinMs: number) =>
  Effect.timeoutOption(
    Effect.async<void>((resume) => stream.onDrained(() => resume(Effect.void))),
    Math.max(0, withinMs)
  )

/** Succeeds with the exit code. */
export const serve = (settings: Settings): Effect.Effect<void, FatalError> =>
  Effect.gen(function* () {
    const stderr = OutputStream.make(2, () => {})
    const log = yield* makeLog(settings.log, settings.secrets, stderr)
    const scope = yield* Scope.make()
    const end = yield* Deferred.make<string>()
    const abandoned = yield* Deferred.make<void>()
    const finish = (why: string) => void Deferred.unsafeDone(end, Effect.succeed(why))
    /** The same where nobody is left to take answers. */
    const abandon = (why: string) => {
      finish(why)
      Deferred.unsafeDone(abandoned, Effect.void)
    }

    captureConsole(log)
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => finish(signal))
    // A terminal that closes, and a reader that is gone: nobody waits for answers.
    process.on("SIGHUP", () => abandon("SIGHUP"))
    const stdout = OutputStream.make(1, () => abandon("stdout closed"))

    yield* Effect.gen(function* () {
      const sources = yield* fromSettings(settings.sources)
      // Drivers throw from socket handlers: the source whose handler it was fails its calls, and the server goes on.
      const onFault = (error: unknown) => {
        const owner = currentOwner()
        const known = owner !== undefined && sources.all.some((source) => source.crashed(owner, error))
        if (!known) log.unsafeEvent("error", "uncaught", { cause: error })
      }
      process.on("uncaughtException", onFault)
      process.on("unhandledRejection", onFault)
      const stdio = Stdio.make({
        input: process.stdin,
        output: stdout,
        maxLineBytes,
        maxPendingBytes,
        onEnd: () => finish("stdin ended")
      })
      const server = yield* Effect.provideService(
        McpServer.make({ stdio, structuredContent: settings.structuredContent, secrets: settings.secrets }),
        Sources,
        sources
      )
      yield* log.event("info", "server_started", {
        version,
        node: process.version,
        pid: process.pid,
        sources: settings.sources.map(({ engine, id }) => ({ id, engine }))
      })
      const why = yield* Deferred.await(end)
      const from = performance.now()
      stdio.stop()
      yield* Effect.raceFirst(
        Effect.zipRight(
          server.drain(graceMs),
          Effect.suspend(() => flush(stdout, endMs - (performance.now() - from)))
        ),
        Deferred.await(abandoned)
      )
      yield* log.event("info", "server_stopped", { why })
    }).pipe(
      Effect.provideService(CallLog, log),
      Effect.provide(logEffects(log)),
      Effect.provideService(Scope.Scope, scope)
    )
    // A source that does not let go must not keep the process.
    yield* Scope.close(scope, Exit.void).pipe(Effect.disconnect, Effect.timeoutOption(closeMs))
    yield* flush(stderr, 200)
  }).pipe(Effect.scoped)
