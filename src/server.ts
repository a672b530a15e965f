/**
 * The MCP server for an application's own sources: ours, its own, or both side by side.
 *
 * Nothing starts by importing this module.
 *
 * @module
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type { Scope } from "effect/Scope"
import * as Session from "./McpServer/Session.js"
import * as OutputStream from "./OutputStream.js"
import type { Sources } from "./Sources.js"

/** One client's streams, and what its answers hold. */
export interface ServeOptions {
  /** Where requests come from, a JSON-RPC message a line. Default: `process.stdin`. */
  readonly input?: NodeJS.ReadableStream | undefined
  /**
   * Where answers go. Default: standard output, which then belongs to the protocol alone: what anything else prints there
   * goes to standard error while the server runs.
   */
  readonly output?: NodeJS.WritableStream | undefined
  /** Whether answers have `structuredContent` beside their text. Default: true. */
  readonly structuredContent?: boolean | undefined
  /** Values that no message and no hint of a failure may hold. Default: none; an adapter of ours never tells its own. */
  readonly secrets?: ReadonlyArray<Redacted.Redacted<string>> | undefined
}

/** Lets nothing but the server write to standard output. */
const reserveStandardOutput: Effect.Effect<void, never, Scope> = Effect.acquireRelease(
  Effect.sync(() => {
    const { write } = process.stdout
    process.stdout.write = process.stderr.write.bind(process.stderr)
    return write
  }),
  (write) =>
    Effect.sync(() => {
      process.stdout.write = write
    })
).pipe(Effect.asVoid)

/** An application's own stream, which it gets back without a trace. */
const borrow = (stream: NodeJS.WritableStream, onBroken: () => void) =>
  Effect.acquireRelease(
    Effect.sync(() => OutputStream.fromWritable(stream, onBroken)),
    ({ release }) => Effect.sync(release)
  )

/**
 * Serves one client until its input ends or its output is closed; calls in flight are answered first, for at most 5
 * seconds. Interruption ends it in the same order. A failed call is an answer and never a failure of this Effect.
 *
 * Calls and connections are logged to the `CallLog` of the context; without one, through Effect's logger. Signals and
 * uncaught exceptions stay the application's, those of drivers too unless the sources have `Sources.crashShield`. Standard
 * input and output can be served once in a process.
 *
 * @example
 * ```ts
 * import { NodeRuntime } from "@effect/platform-node"
 * import { Effect } from "effect"
 * import { Sources } from "mcp-query"
 * import { Sqlite } from "mcp-query/adapters"
 * import { serve } from "mcp-query/server"
 *
 * const sources = Sources.layer([{ id: "shop", engine: "sqlite", adapter: Sqlite.layer({ file: "shop.db" }) }])
 *
 * NodeRuntime.runMain(serve().pipe(Effect.provide(sources)))
 * ```
 */
export const serve = (options: ServeOptions = {}): Effect.Effect<void, never, Sources> =>
  Effect.gen(function* () {
    const ending = yield* Session.makeEnding
    const onBroken = () => ending.abandon("output closed")
    if (options.output === undefined) yield* reserveStandardOutput
    const output = yield* options.output === undefined
      ? Effect.sync(() => OutputStream.make(1, onBroken))
      : borrow(options.output, onBroken)
    yield* Session.run({
      input: options.input ?? process.stdin,
      output,
      structuredContent: options.structuredContent ?? true,
      secrets: (options.secrets ?? []).map(Redacted.value),
      ending
    })
  }).pipe(Effect.scoped)

/** A server that runs as long as its Layer. */
export class McpServer extends Context.Tag("mcp-query/McpServer")<
  McpServer,
  {
    /** Waits for the end of its client. */
    readonly ended: Effect.Effect<void>
  }
>() {}

/** {@link serve} in the background of an application, beside its other services; it ends with the scope of the Layer. */
export const layer = (options: ServeOptions = {}): Layer.Layer<McpServer, never, Sources> =>
  Layer.scoped(
    McpServer,
    Effect.map(Effect.forkScoped(Effect.interruptible(serve(options))), (fiber) => ({
      ended: Effect.asVoid(Fiber.await(fiber))
    }))
  )
