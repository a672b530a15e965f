/**
 * A span for each call, by OpenTelemetry's conventions for MCP. It stands beneath the client's own span where the client
 * tells one (`_meta.traceparent`), and above those of the source.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Tracer from "effect/Tracer"
import type { QueryError } from "../QueryError.js"
import { whereRead } from "../Tracing.js"
import { categoryOf } from "./Response.js"

export interface SpanFacts {
  /** The JSON-RPC method. */
  readonly method: string
  readonly tool: string
  readonly requestId: string | number
  readonly source: string | undefined
  readonly correlationId: string
  /** The request's `_meta`, as it came. */
  readonly meta: unknown
}

/** Version, trace, parent and flags of the W3C's trace context; the lowest flag says whether the trace is recorded. */
const traceparent = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/

const parentOf = (meta: unknown): Tracer.ExternalSpan | undefined => {
  const text =
    typeof meta === "object" && meta !== null && "traceparent" in meta ? meta.traceparent : undefined
  const [, traceId, spanId, flags] = (typeof text === "string" && traceparent.exec(text)) || []
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined
  return Tracer.externalSpan({ traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 })
}

const ofCause = (cause: Cause.Cause<QueryError>): Record<string, unknown> => {
  const failure = Cause.failureOption(cause)
  if (Option.isSome(failure))
    return {
      "error.type": "tool_error",
      "mcp_query.category": categoryOf(failure.value),
      "mcp_query.reason": failure.value.reason
    }
  if (Cause.isInterruptedOnly(cause)) return {}
  return { "error.type": "tool_error", "mcp_query.category": "internal_error" }
}

export const traced = <A, R>(
  { correlationId, meta, method, requestId, source, tool }: SpanFacts,
  effect: Effect.Effect<A, QueryError, R>
): Effect.Effect<A, QueryError, R> =>
  whereRead(effect, () => {
    const parent = parentOf(meta)
    const isTool = method === "tools/call"
    return effect.pipe(
      Effect.tapErrorCause((cause) => Effect.annotateCurrentSpan(ofCause(cause))),
      Effect.withSpan(isTool ? `${method} ${tool}` : method, {
        kind: "server",
        captureStackTrace: false,
        ...(parent === undefined ? {} : { parent }),
        attributes: {
          "mcp.method.name": method,
          ...(isTool ? { "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool } : {}),
          "jsonrpc.request.id": String(requestId),
          "mcp_query.correlation_id": correlationId,
          ...(source === undefined ? {} : { "mcp_query.source": source })
        }
      })
    )
  })
