/** What several files of tests ask of an adapter. */
import * as Effect from "effect/Effect"
import type { AdapterService, CallLimits, Parameter } from "../../../src/Adapter.js"
import { admit } from "../../../src/Policy.js"

export const limits: CallLimits = {
  maxRows: 1000,
  maxBytes: 100_000,
  maxCellBytes: 16_384,
  timeoutMs: 30_000,
  format: "columnar"
}

/** Admits and runs a statement. */
export const ask = (
  adapter: AdapterService,
  sql: string,
  { params = [], ...more }: Partial<CallLimits> & { readonly params?: ReadonlyArray<Parameter> } = {}
) =>
  Effect.flatMap(admit("postgres", { sql, params }), (query) => adapter.query(query, { ...limits, ...more }))

export const rowsOf = (adapter: AdapterService, sql: string) =>
  Effect.map(ask(adapter, sql), ({ rows }) => rows)
