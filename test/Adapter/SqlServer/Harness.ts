/** An adapter on the test server, and the ways in which the tests call it. */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { Scope } from "effect/Scope"
import { Config } from "../../../src/Adapter/SqlServer/Config.js"
import { make } from "../../../src/Adapter/SqlServer.js"
import type { AdapterService, CallLimits, Parameter } from "../../../src/Adapter.js"
import * as Policy from "../../../src/Policy.js"
import type { AdapterFailure } from "../../../src/QueryError.js"
import type { RowSet } from "../../../src/Rows.js"
import { type Script, start, type TdsServer } from "./TdsServer.js"

export const limits: CallLimits = {
  maxRows: 1000,
  maxBytes: 2 ** 22,
  maxCellBytes: 2 ** 20,
  timeoutMs: 30_000,
  format: "columnar"
}

export interface Harness {
  readonly server: TdsServer
  readonly adapter: AdapterService
  readonly query: (
    sql: string,
    options?: { readonly params?: ReadonlyArray<Parameter>; readonly limits?: Partial<CallLimits> }
  ) => Effect.Effect<RowSet, AdapterFailure>
}

export const queryOn =
  (adapter: AdapterService): Harness["query"] =>
  (sql, options = {}) =>
    Effect.flatMap(Policy.admit("mssql", { sql, params: options.params ?? [] }), (query) =>
      adapter.query(query, { ...limits, ...options.limits })
    )

type Fields = ConstructorParameters<typeof Config>[0]

export const password = "a secret of the tests"

/** A configuration for a server on this machine; encryption is off unless the test wants it. */
export const configFor = (port: number, more: Partial<Fields> = {}) =>
  new Config({
    host: "127.0.0.1",
    port,
    user: "reader",
    password: Redacted.make(password),
    encrypt: false,
    ...more
  })

export const harness = (
  script: Script = {},
  more: Partial<Fields> = {}
): Effect.Effect<Harness, never, Scope> =>
  Effect.gen(function* () {
    const server = yield* start(script)
    const adapter = yield* make(configFor(server.port, more))
    return { server, adapter, query: queryOn(adapter) }
  })
