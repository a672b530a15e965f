/** `mcp-query SOURCE...`: serves over stdio until the client is done or a signal comes. */
import { setFlagsFromString } from "node:v8"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Logger from "effect/Logger"
import * as Scope from "effect/Scope"
import { blame } from "../Adapter/Owner.js"
import { CallLog, make as makeLog, type ProcessLog } from "../CallLog.js"
import type { FatalError } from "../FatalError.js"
import * as Session from "../McpServer/Session.js"
import * as OutputStream from "../OutputStream.js"
import type { Settings } from "../Settings.js"
import { fromSettings, Sources } from "../Sources.js"

/** Connections and child processes may take this long to end. */
const closeMs = 800

/**
 * After a few statements V8 optimises PostgreSQL's grammar (WebAssembly) in the background: 0.1 to 0.5 s of processor time
 * and 25 to 60 MiB, to save a tenth of a millisecond in a statement of 4 kB. Without it V8 keeps the code it starts with.
 * It takes both flags, before the grammar is loaded. They hold for the whole process, so only the command sets them.
 */
const keepBaselineWasm = () => {
  setFlagsFromString("--no-wasm-dynamic-tiering")
  setFlagsFromString("--no-wasm-tier-up")
}

/** Standard output is the protocol's alone: what a dependency prints becomes a line of the log. */
const captureConsole = (log: ProcessLog) => {
  const capture = (chunk: unknown, encoding?: unknown, written: unknown = encoding): true => {
    const text = (
      typeof chunk === "string" ? chunk : Buffer.from(chunk as Uint8Array).toString("utf8")
    ).trim()
    if (text !== "") log.unsafeEvent("debug", "message", { text })
    if (typeof written === "function") process.nextTick(written)
    return true
  }
  process.stdout.write = capture
  process.stderr.write = capture
}

const logEffects = (log: ProcessLog) =>
  Logger.replace(
    Logger.defaultLogger,
    Logger.make(({ logLevel, message }) =>
      log.unsafeEvent("debug", "message", { logLevel: logLevel.label, message })
    )
  )

/** Succeeds with the exit code. */
export const serve = (settings: Settings): Effect.Effect<void, FatalError> =>
  Effect.gen(function* () {
    const stderr = OutputStream.make(2, () => {})
    const log = yield* makeLog(settings.log, settings.secrets, stderr)
    const scope = yield* Scope.make()
    const ending = yield* Session.makeEnding

    captureConsole(log)
    keepBaselineWasm()
    // Drivers throw from socket handlers: the source whose handler it was fails its calls, and the server goes on.
    for (const fault of ["uncaughtException", "unhandledRejection"] as const)
      process.on(fault, (error: unknown) => {
        if (!blame(error)) log.unsafeEvent("error", "uncaught", { cause: error })
      })
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => ending.finish(signal))
    // A terminal that closes, and a reader that is gone: nobody waits for answers.
    process.on("SIGHUP", () => ending.abandon("SIGHUP"))
    const stdout = OutputStream.make(1, () => ending.abandon("stdout closed"))

    yield* Effect.gen(function* () {
      const sources = yield* fromSettings(settings.sources)
      yield* Effect.provideService(
        Session.run({
          input: process.stdin,
          output: stdout,
          structuredContent: settings.structuredContent,
          secrets: settings.secrets,
          ending
        }),
        Sources,
        sources
      )
    }).pipe(
      Effect.tapErrorCause((cause) => log.event("error", "fatal", { cause: Cause.squash(cause) })),
      Effect.provideService(CallLog, log),
      Effect.provide(logEffects(log)),
      Effect.provideService(Scope.Scope, scope)
    )
    // A source that does not let go must not keep the process.
    yield* Scope.close(scope, Exit.void).pipe(Effect.disconnect, Effect.timeoutOption(closeMs))
    yield* Session.flush(stderr, 200)
  }).pipe(
    Effect.scoped,
    // The command has nowhere to send spans; an application that embeds the server may have.
    Effect.withTracerEnabled(false)
  )
