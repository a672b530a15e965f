/**
 * tools/list and tools/call on the SDK's low-level server: a call's signal becomes the interruption of its fiber, its
 * outcome a result, and each call one line of the log.
 */
import { Server } from "@modelcontextprotocol/sdk/server/index.js"
import { ErrorCode, McpError } from "@modelcontextprotocol/sdk/types.js"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as Runtime from "effect/Runtime"
import { monotonicFactory } from "ulid"
import { CallLog, redactor } from "./CallLog.js"
import { isJsonObject } from "./JsonObject.js"
import { type CallResult, fromExit, type Response } from "./McpServer/Response.js"
import * as Span from "./McpServer/Span.js"
import type { Stdio } from "./McpServer/Stdio.js"
import { ConnectionFailed } from "./QueryError.js"
import { CurrentCall, Sources, type SourcesService } from "./Sources.js"
import type { Tool, ToolAnswer } from "./Tool.js"
import * as Tools from "./Tools.js"
import { version } from "./Version.js"

export interface McpServerOptions {
  readonly stdio: Stdio
  /** Whether results have structured content beside their text. */
  readonly structuredContent: boolean
  /** Texts that no message and no hint of a failure may hold. */
  readonly secrets: ReadonlyArray<string>
}

export interface McpServer {
  /** Begins to read. */
  readonly start: Effect.Effect<void>
  /** Waits until nothing is in flight, for at most `graceMs`; what is not done by then is answered as failed. */
  readonly drain: (graceMs: number) => Effect.Effect<void>
}

/** What a call is told of its request. */
interface Request {
  readonly method: string
  readonly requestId: string | number
  readonly meta: unknown
}

const stopping = new ConnectionFailed({
  reason: "closed",
  message: "The server is stopping.",
  hint: "Start the server again and repeat the call."
})

const invalidParams = (message: string) => new McpError(ErrorCode.InvalidParams, message)

/** The protocol's code for a resource that is not there. */
const resourceNotFound = -32002

const resourceError = (code: number, message: string, data?: unknown) => new McpError(code, message, data)

const loadResources = () => import("./McpServer/Resources.js")

/** The source that a call concerns, as far as raw arguments tell. */
const sourceIdOf = (sources: SourcesService, args: unknown): string | undefined => {
  const named = isJsonObject(args) ? args["source"] : undefined
  if (named !== undefined)
    return typeof named === "string" && Option.isSome(sources.get(named)) ? named : undefined
  return sources.all.length === 1 ? sources.all[0]?.id : undefined
}

const textBytes = ({ content }: CallResult) => Buffer.byteLength(content[0].text)

export const make = (options: McpServerOptions): Effect.Effect<McpServer, never, Sources> =>
  Effect.gen(function* () {
    const { stdio } = options
    const sources = yield* Sources
    const log = yield* CallLog
    const runtime = yield* Effect.runtime<never>()
    const stopped = yield* Deferred.make<never, ConnectionFailed>()
    const tools = Tools.make(sources)
    const redact = redactor(options.secrets)
    const correlationIds = monotonicFactory()

    const awaitReader = Effect.async<void>((resume) => stdio.onReader(() => resume(Effect.void)))

    /** A call from its raw arguments to its response; none when it was cancelled. */
    const call = (tool: Tool, args: unknown, { meta, method, requestId }: Request) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.gen(function* () {
          const correlationId = correlationIds()
          const source = sourceIdOf(sources, args)
          const attempts = yield* Ref.make(0)
          const from = performance.now()
          const exit = yield* Effect.exit(
            restore(
              Effect.raceFirst(
                tool
                  .run(args)
                  .pipe(Effect.provideService(CurrentCall, { attempts, awaitReader }), (running) =>
                    Span.traced({ method, tool: tool.name, requestId, source, correlationId, meta }, running)
                  ),
                Deferred.await(stopped)
              )
            )
          )
          const response = fromExit(exit, {
            correlationId,
            source,
            structuredContent: options.structuredContent,
            redact
          })
          yield* log.call({
            correlationId,
            requestId,
            tool: tool.name,
            ...(source === undefined ? {} : { source }),
            arguments: args,
            durationMs: Math.round((performance.now() - from) * 10) / 10,
            attempts: Math.max(1, yield* Ref.get(attempts)),
            ...outcomeOf(response, exit._tag === "Success" ? exit.value : undefined)
          })
          return response
        })
      )

    const answer = async (tool: Tool, args: unknown, request: Request, signal: AbortSignal) =>
      // The SDK leaves a cancelled request unanswered, whatever becomes of this.
      Option.getOrThrowWith(
        await Runtime.runPromise(runtime)(call(tool, args, request), { signal }),
        () => new McpError(ErrorCode.ConnectionClosed, "Cancelled.")
      )

    const listTools = async () => {
      const { make } = await import("./McpServer/ToolList.js")
      return { tools: make(tools, options.structuredContent) }
    }

    const callTool = async (params: unknown, request: Request, signal: AbortSignal) => {
      const { arguments: args, name } = isJsonObject(params) ? params : {}
      const tool = tools.find((candidate) => candidate.name === name)
      if (typeof name !== "string") throw invalidParams("The tool's name must be a string.")
      if (tool === undefined)
        throw invalidParams(
          `There is no such tool; the tools are ${tools.map(({ name }) => name).join(", ")}.`
        )
      if (args !== undefined && !isJsonObject(args))
        throw invalidParams("The tool's arguments must be an object.")
      return (await answer(tool, args, request, signal)).result
    }

    const readResource = async (params: unknown, request: Request, signal: AbortSignal) => {
      const Resources = await loadResources()
      const { uri } = isJsonObject(params) ? params : {}
      if (typeof uri !== "string") throw invalidParams("The resource's uri must be a string.")
      const args = Resources.argumentsOf(sources, uri)
      const tool = tools.find(({ name }) => name === "schema")
      if (args === undefined || tool === undefined)
        throw resourceError(resourceNotFound, "There is no such resource.")
      const { error, result } = await answer(tool, args, request, signal)
      if (error !== undefined)
        throw resourceError(
          error.reason === "unknown_table" ? resourceNotFound : ErrorCode.InternalError,
          error.message,
          error
        )
      return Resources.contents(uri, result.content[0].text)
    }

    const server = new Server({ name: "mcp-query", version }, { capabilities: { tools: {}, resources: {} } })
    server.fallbackRequestHandler = async ({ method, params }, { _meta, requestId, signal }) => {
      const request = { method, requestId: stdio.clientId(requestId), meta: _meta }
      switch (method) {
        case "tools/list":
          return listTools()
        case "tools/call":
          return callTool(params, request, signal)
        case "resources/list":
          return (await loadResources()).list(sources)
        case "resources/templates/list":
          return (await loadResources()).templates(sources)
        case "resources/read":
          return readResource(params, request, signal)
        default:
          throw new McpError(ErrorCode.MethodNotFound, "Method not found.")
      }
    }
    // The SDK reports here, before it returns, that it could not read a message.
    server.onerror = stdio.refuse
    const idle = Effect.async<void>((resume) => {
      stdio.onIdle(() => resume(Effect.void))
    })
    return {
      start: Effect.promise(() => server.connect(stdio)),
      drain: (graceMs) =>
        idle.pipe(
          Effect.timeoutTo({ duration: graceMs, onSuccess: () => true, onTimeout: () => false }),
          Effect.flatMap((done) =>
            done
              ? Effect.void
              : Effect.zipRight(Deferred.fail(stopped, stopping), Effect.timeoutOption(idle, "1 second"))
          )
        )
    }
  })

const outcomeOf = (response: Option.Option<Response>, answer: ToolAnswer | undefined) => {
  if (Option.isNone(response)) return { outcome: "cancelled" as const }
  const { failure, result } = response.value
  const bytes = textBytes(result)
  if (failure !== undefined) return { outcome: "failed" as const, ...failure, bytes }
  return { outcome: "succeeded" as const, ...answer?.facts, bytes }
}
