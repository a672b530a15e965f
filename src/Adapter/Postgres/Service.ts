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
import type { PooledSession } from "./SessionPool.js"
import * as Sessions from "./Sessions.js"
import { type CatalogRow, lookup, Types } from "./Type.js"
import { maxMessageBytes, type Sink, type StatementText } from "./Wire.js"

const explain = "EXPLAIN (FORMAT JSON) "

/** Of a statement whose parameters have no values, since {@link genericPlans}. */
const explainGeneric = "EXPLAIN (FORMAT JSON, GENERIC_PLAN) "

/** The first major version that plans without values. */
const genericPlans = 16

/** An empty statement or more in front, which none of these may have behind `EXPLAIN`. */
const emptyStatements = /^[\s;]*;/

/** Maybe an `EXPLAIN (GENERIC_PLAN)` of the caller's own; anything else the engine refuses without values. */
const isGenericExplain = (sql: string) => /\bexplain\b/i.test(sql) && /\bgeneric_plan\b/i.test(sql)

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

const planNeedsValues = (version: number, { engine, cause }: QueryFailed) =>
  new QueryFailed({
    reason: "parameters",
    message: `PostgreSQL ${version} plans a statement with parameters only when each of them has a value.`,
    hint: "Give one value for each of $1, $2, … in params, or write values in their places.",
    ...(engine === undefined ? {} : { engine }),
    cause
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
      statement: StatementText,
      sink: (session: PooledSession) => Sink,
      timeoutMs: number,
      said: () => string,
      prefix: number
    ): Effect.Effect<void, AdapterFailure> =>
      Effect.flatMap(sessions.run(statement, sink, timeoutMs), (ran) => {
        switch (ran._tag) {
          case "Completed":
            return Effect.void
          case "Refused":
            return Effect.fail(
              refused(ran.error, { said: said(), prefix, timedOut: ran.timedOut, confidential })
            )
          case "Oversized":
            return Effect.fail(oversized(maxMessageBytes))
        }
      })

    /** A statement of our own, to its end. */
    const ask = (
      text: string,
      values: ReadonlyArray<string | null>,
      timeoutMs: number,
      meet: (session: PooledSession) => void = () => {}
    ) =>
      Effect.suspend(() => {
        const rows: Array<CatalogRow> = []
        const sink: Sink = { columns: () => {}, row: (row) => rows.push(row) > 0 }
        const meeting = (session: PooledSession) => {
          meet(session)
          return sink
        }
        return Effect.as(
          run({ text, values, rows: 100_000 }, meeting, timeoutMs, () => text, 0),
          rows
        )
      })

    /** Asks the catalog for whatever an answer's columns need, until nothing is unknown. */
    const complete = (answer: Answer, timeoutMs: number) =>
      Effect.gen(function* () {
        for (let unknown = answer.unknownTypes; unknown.length > 0; unknown = answer.unknownTypes) {
          answer.learnTypes(unknown, yield* ask(lookup, [`{${unknown.join()}}`], timeoutMs))
        }
        answer.settleTypes()
      })

    /** Sends the caller's statement; one that the grammar could not read is only parsed. */
    const read = (
      query: AdmittedQuery,
      { timeoutMs }: CallLimits,
      prefix: string,
      rows: number,
      sink: (session: PooledSession) => Sink,
      unbound = false
    ): Effect.Effect<void, AdapterFailure> => {
      const { mode, params, sql } = query
      if (params.length > maxParameters) return Effect.fail(tooManyParameters)
      const said = () => [sql, ...params].join("\n")
      const skipped = prefix === "" ? 0 : (emptyStatements.exec(sql)?.[0].length ?? 0)
      return mode === "execute"
        ? run(
            { text: prefix + sql.slice(skipped), values: params.map(parameterText), rows, unbound },
            sink,
            timeoutMs,
            said,
            prefix.length - skipped
          )
        : Effect.zipRight(
            run({ text: sql, values: [], rows: 0 }, sink, timeoutMs, said, 0),
            Effect.fail(unverifiable)
          )
    }

    /**
     * Once the engine has read the statement as a single one and missed values for its parameters, of which the caller
     * gave none.
     */
    const whereValuesMiss = (
      { params }: AdmittedQuery,
      first: Effect.Effect<void, AdapterFailure>,
      instead: (failure: QueryFailed) => Effect.Effect<void, AdapterFailure>
    ) =>
      Effect.catchIf(
        first,
        (failure): failure is QueryFailed =>
          failure._tag === "QueryFailed" &&
          failure.reason === "parameters" &&
          failure.engine?.code === "08P01" &&
          params.length === 0,
        instead
      )

    return {
      engine: "postgres",

      query: (query, limits) =>
        Effect.suspend(() => {
          let answer: Answer | undefined
          const sink = (session: PooledSession) => {
            const unchecked = session.parameter("server_encoding") === "SQL_ASCII"
            answer = new Answer(
              new Types(types),
              limits,
              { moneyDigits: session.facts?.moneyDigits ?? 2 },
              unchecked
            )
            return answer.sink
          }
          const rows = limits.maxRows + 1
          return Effect.flatMap(
            whereValuesMiss(query, read(query, limits, "", rows, sink), (failure) =>
              isGenericExplain(query.sql) ? read(query, limits, "", rows, sink, true) : failure
            ),
            () => {
              if (answer === undefined) return Effect.dieMessage("no answer was begun")
              const begun = answer
              return begun.unknownTypes.length === 0
                ? Effect.sync(() => begun.finish())
                : Effect.map(complete(begun, limits.timeoutMs), () => begun.finish())
            }
          )
        }),

      explain: (query, limits) =>
        Effect.suspend(() => {
          let json = "[]"
          let version = genericPlans
          const sink: Sink = {
            columns: () => {},
            row: ([plan]) => {
              json = plan ?? json
              return true
            }
          }
          const meet = (session: PooledSession) => {
            version = Number.parseInt(session.parameter("server_version") ?? "", 10)
            return sink
          }
          return Effect.map(
            whereValuesMiss(query, read(query, limits, explain, 1, meet), (failure) =>
              version < genericPlans
                ? planNeedsValues(version, failure)
                : read(query, limits, explainGeneric, 1, meet, true)
            ),
            () => planLines(json, limits.maxBytes)
          )
        }),

      client: Client.make(sessions, confidential),

      report: Effect.gen(function* () {
        let tls: boolean | null = null
        const [row] = yield* ask(privilegesQuery, [], 30_000, ({ target }) => {
          tls = target.host.startsWith("/") ? null : target.tls !== null
        })
        const [version, login, facts] = row ?? []
        return {
          version: version ?? "PostgreSQL",
          tls,
          login: login ?? null,
          ...(yield* privilegesOf(facts))
        }
      })
    }
  })
