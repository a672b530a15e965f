/** Asks an adapter as a call would, and gives its answer in plain form. */
import * as Effect from "effect/Effect"
import type { AdapterService, CallLimits, Parameter } from "../../../src/Adapter.js"
import * as Policy from "../../../src/Policy.js"
import type { AdapterFailure } from "../../../src/QueryError.js"
import type { Answer } from "./Expected.js"

export const limits: CallLimits = {
  maxRows: 1000,
  maxBytes: 100_000,
  maxCellBytes: 16_384,
  timeoutMs: 30_000,
  format: "columnar"
}

const categories = {
  ConnectionFailed: "connection_failed",
  QueryFailed: "query_failed",
  QueryRejected: "query_rejected"
} as const

/** The rows of a statement, or its failure as it is. */
export const query = (
  adapter: AdapterService,
  sql: string,
  params: ReadonlyArray<Parameter> = [],
  changed: Partial<CallLimits> = {}
) =>
  Effect.flatMap(Policy.admit(adapter.engine, { sql, params }), (admitted) =>
    adapter.query(admitted, { ...limits, ...changed })
  )

export const ask = (adapter: AdapterService, sql: string, params: ReadonlyArray<Parameter> = []) =>
  Effect.match(query(adapter, sql, params), {
    onSuccess: (result): Answer => ({ result }),
    onFailure: (failure: AdapterFailure): Answer => ({
      failure: {
        category: categories[failure._tag],
        reason: failure.reason,
        text: `${failure.message}\n${failure.hint ?? ""}`
      }
    })
  })
