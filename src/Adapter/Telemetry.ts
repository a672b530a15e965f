/**
 * A span for each statement, by OpenTelemetry's conventions for database clients. Whoever provides a tracer (say, that
 * of `@effect/opentelemetry`) gets them; without one none is made.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { AdapterService, Statement } from "../Adapter.js"
import type { AdapterFailure } from "../QueryError.js"
import { whereRead } from "../Tracing.js"

/** What is the same for all statements of one adapter. */
export interface Database {
  /** `db.system.name`: a name of OpenTelemetry's list (`sqlite`, `postgresql`, `other_sql`, …). */
  readonly system: string
  /** `db.namespace`: the database's name, where it has one. */
  readonly namespace?: string | undefined
  /** `server.address`: the host's name or address, where there is a network in between. */
  readonly address?: string | undefined
  /** `server.port`, a TCP port. */
  readonly port?: number | undefined
}

/**
 * Whether a span tells its statement (`db.query.text`): `parameterized` (default) only where the values are given as
 * parameters, because others stand in the text; `always`; `never`. Parameters are never told.
 */
export class QueryText extends Context.Reference<QueryText>()("mcp-query/Telemetry/QueryText", {
  defaultValue: (): "parameterized" | "always" | "never" => "parameterized"
}) {}

const ofDatabase = ({ address, namespace, port, system }: Database): Record<string, unknown> => ({
  "db.system.name": system,
  ...(namespace === undefined ? {} : { "db.namespace": namespace }),
  ...(address === undefined ? {} : { "server.address": address }),
  ...(address === undefined || port === undefined ? {} : { "server.port": port })
})

const ofFailure = ({ engine, reason }: AdapterFailure): Record<string, unknown> => ({
  "error.type": engine?.code ?? reason,
  ...(engine?.code === undefined ? {} : { "db.response.status_code": engine.code })
})

/** A defect is told by its class, an interruption is no error. */
const ofCause = (cause: Cause.Cause<AdapterFailure>): Record<string, unknown> => {
  const failure = Cause.failureOption(cause)
  if (Option.isSome(failure)) return ofFailure(failure.value)
  if (Cause.isInterruptedOnly(cause)) return {}
  const defect = Cause.squash(cause)
  return { "error.type": defect instanceof Error ? defect.name : "_OTHER" }
}

/** The same adapter, with a span around each `query` and `explain`. */
export const traced = (database: Database, service: AdapterService): AdapterService => {
  const common = ofDatabase(database)
  const target = database.namespace ?? database.system

  const span = <A>(
    name: string,
    { params, sql }: Statement,
    own: Record<string, unknown>,
    effect: Effect.Effect<A, AdapterFailure>,
    told: (answer: A) => Record<string, unknown>
  ) =>
    whereRead(effect, () =>
      Effect.flatMap(QueryText, (queryText) =>
        effect.pipe(
          Effect.tap((answer) => Effect.annotateCurrentSpan(told(answer))),
          Effect.tapErrorCause((cause) => Effect.annotateCurrentSpan(ofCause(cause))),
          Effect.withSpan(name, {
            kind: "client",
            captureStackTrace: false,
            attributes: {
              ...common,
              ...own,
              ...(queryText === "always" || (queryText === "parameterized" && params.length > 0)
                ? { "db.query.text": sql }
                : {})
            }
          })
        )
      )
    )

  return {
    ...service,
    query: (query, limits) =>
      span(target, query, {}, service.query(query, limits), ({ rows }) => ({
        "db.response.returned_rows": rows.length
      })),
    explain: (query, limits) =>
      span(
        `EXPLAIN ${target}`,
        query,
        { "db.operation.name": "EXPLAIN" },
        service.explain(query, limits),
        () => ({})
      )
  }
}
