/**
 * PostgreSQL behind the port. A statement runs in one round trip, in a read-only transaction that is rolled back; its
 * rows become an answer while they arrive; what its types are called is looked up once.
 */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { Scope } from "effect/Scope"
import type { AdapterService, AdmittedQuery, CallLimits, Parameter } from "../../Adapter.js"
import { type AdapterFailure, QueryFailed, QueryRejected } from "../../QueryError.js"
import { Answer } from "./Answer.js"
import * as Client from "./Client.js"
import { type Config, hostsOf } from "./Config.js"
import { type Confidential, oversized, refused } from "./Failure.js"
import { planLines } from "./Plan.js"
import { privilegesOf, privilegesQuery } from "./Privileges.js"
import * as Sessions from "./Sessions.js"
import { type CatalogRow, lookup, Types } from "./Type.js"
import { maxMessageBytes, type Sink, type StatementText } from "./Wire.js"

const explain = "EXPLAIN (FORMAT JSON) "

/** What the protocol can carry in one message. */
const maxParameters = 65_535

/** The engine reads a parameter's text by the type of the place where it stands. */
const parameterText = (value: Parameter): string | null => (value === null ? null : String(value))

const tooManyParameters = new QueryFailed({
  reason: "parameters",
  message: `A statement takes at most ${maxParameters} parameters.`,
  hint: "Give a list as one array, as in = any($1::integer[])."
})

const unverifiable = new QueryRejected({
  reason: "unverifiable",
  message: "The database understands this statement, but it could not be verified to be a read.",
  hint: "Write it in another way, with less nesting."
})

/** An adapter for one source. Nothing is contacted before the first call; the scope's end closes every session. */
export const make = (config: Config): Effect.Effect<AdapterService, never, Scope> =>
  Effect.gen(function* () {
    const sessions = yield* Sessions.make(config)
    const types = new Types()
    const confidential: Confidential = {
      password: config.password === undefined ? undefined : Redacted.value(config.password),
      names: [sessions.login.user, ...hostsOf(config).map(({ host }) => host)]
    }

    /** Runs a statement and turns its refusal into a failure. `said` and `prefix`: what of it the caller wrote. */
    const run = (
      lease: Sessions.Lease,
      statement: StatementText,
      sink: Sink,
      timeoutMs: number,
      said: { readonly text: string; readonly prefix: number } = { text: statement.text, prefix: 0 }
    ): Effect.Effect<void, AdapterFailure> =>
      Effect.flatMap(lease.run(statement, sink, timeoutMs), (ran) => {
        switch (ran._tag) {
          case "Completed":
            return Effect.void
          case "Refused":
            return Effect.fail(
              refused(ran.error, {
                said: said.text,
                prefix: said.prefix,
                timedOut: ran.timedOut,
                confidential
              })
            )
          case "Oversized":
            return Effect.fail(oversized(maxMessageBytes))
        }
      })

    const ask = (lease: Sessions.Lease, text: string, values: ReadonlyArray<string>, timeoutMs: number) =>
      Effect.gen(function* () {
        const rows: Array<CatalogRow> = []
        const sink: Sink = { columns: () => {}, row: (row) => rows.push(row) > 0 }
        yield* run(lease, { text, values, rows: 100_000 }, sink, timeoutMs)
        return rows
      })

    /** Asks the catalog for whatever an answer's columns need, until nothing is unknown. */
    const complete = (lease: Sessions.Lease, answer: Answer, timeoutMs: number) =>
      Effect.gen(function* () {
        for (let unknown = answer.unknownTypes; unknown.length > 0; unknown = answer.unknownTypes) {
          types.learn(unknown, yield* ask(lease, lookup, [`{${unknown.join()}}`], timeoutMs))
        }
        answer.settleTypes()
        if (answer.needsMoney) {
          const [row] = yield* ask(lease, "select 0::pg_catalog.money", [], timeoutMs)
          const zero = row?.[0] ?? ""
          lease.session.moneyDigits = Math.max(0, zero.replace(/[^0-9]/g, "").length - 1)
        }
      })

    /** The caller's statement as it is sent; one that the grammar could not read is only parsed. */
    const sent = (query: AdmittedQuery, prefix: string, rows: number): StatementText =>
      query.mode === "execute"
        ? { text: prefix + query.sql, values: query.params.map(parameterText), rows }
        : { text: query.sql, values: [], rows: 0 }

    const read = (
      query: AdmittedQuery,
      limits: CallLimits,
      prefix: string,
      rows: number,
      sink: (lease: Sessions.Lease) => Sink
    ) =>
      Effect.gen(function* () {
        if (query.params.length > maxParameters) return yield* tooManyParameters
        const lease = yield* sessions.lease
        const said = {
          text: [query.sql, ...query.params].join("\n"),
          prefix: query.mode === "execute" ? prefix.length : 0
        }
        yield* run(lease, sent(query, prefix, rows), sink(lease), limits.timeoutMs, said)
        if (query.mode === "prepare_only") return yield* unverifiable
        return lease
      })

    return {
      engine: "postgres",

      query: (query, limits) =>
        Effect.gen(function* () {
          let answer: Answer | undefined
          const lease = yield* read(query, limits, "", limits.maxRows + 1, ({ session }) => {
            const unchecked = session.parameter("server_encoding") === "SQL_ASCII"
            answer = new Answer(types, limits, () => session.moneyDigits, unchecked)
            return answer.sink
          })
          if (answer === undefined) return yield* Effect.dieMessage("no answer was begun")
          yield* complete(lease, answer, limits.timeoutMs)
          return answer.finish()
        }).pipe(Effect.scoped),

      explain: (query, limits) =>
        Effect.gen(function* () {
          let json = "[]"
          yield* read(query, limits, explain, 1, () => ({
            columns: () => {},
            row: ([plan]) => {
              json = plan ?? json
              return true
            }
          }))
          return planLines(json, limits.maxBytes)
        }).pipe(Effect.scoped),

      client: Client.make(sessions, confidential),

      report: Effect.gen(function* () {
        const lease = yield* sessions.lease
        const [row] = yield* ask(lease, privilegesQuery, [], 30_000)
        const [version, login, facts] = row ?? []
        return {
          version: version ?? "PostgreSQL",
          tls: lease.session.target.host.startsWith("/") ? null : lease.session.target.tls !== null,
          login: login ?? null,
          ...privilegesOf(facts ?? "{}")
        }
      }).pipe(Effect.scoped)
    }
  })
