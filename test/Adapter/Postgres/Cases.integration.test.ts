import { readFileSync } from "node:fs"
import { describe, expect, layer, type TestContext } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { Scope } from "effect/Scope"
import pg from "pg"
import * as Postgres from "../../../src/Adapter/Postgres.js"
import type { AdapterService, CallLimits, Parameter } from "../../../src/Adapter.js"
import { admit } from "../../../src/Policy.js"
import { QueryFailed } from "../../../src/QueryError.js"
import * as TestServer from "./TestServer.js"

interface Entry {
  readonly id: string
  readonly sql: string
  readonly params?: ReadonlyArray<Parameter>
  readonly setup?: ReadonlyArray<string>
  readonly limits?: Partial<Record<"maxRows" | "maxBytes" | "maxCellBytes" | "timeoutMs", number>>
  readonly tz?: ReadonlyArray<string>
  readonly settings?: ReadonlyArray<Record<string, string>>
  readonly minVersion?: number
}

interface ValueEntry extends Entry {
  readonly columns: ReadonlyArray<string>
  readonly columnTypes: ReadonlyArray<string>
  readonly rows?: ReadonlyArray<ReadonlyArray<unknown>>
  readonly rowCountRange?: readonly [number, number]
  readonly truncated?: boolean
  readonly truncatedBy?: string
  readonly truncatedCells?: ReadonlyArray<unknown>
}

interface ErrorEntry extends Entry {
  readonly category: string
  readonly alsoCategory?: string
  readonly reason: string
  readonly reasonAlso?: ReadonlyArray<string>
  readonly engineCode?: string
  readonly engineCodeAlso?: ReadonlyArray<string>
  readonly position?: number
  readonly messageMatches?: string
  readonly how?: string
}

const read = <A>(name: string): ReadonlyArray<A> =>
  JSON.parse(readFileSync(new URL(`../../cases/${name}.postgres.json`, import.meta.url), "utf8"))

const limitsOf = (entry: Entry): CallLimits => ({
  maxRows: 1000,
  maxBytes: 100_000,
  maxCellBytes: 16_384,
  timeoutMs: 30_000,
  ...entry.limits,
  format: "columnar"
})

/** As the layer above does it: the deadline interrupts, and a lost connection is tried once more. */
const ask = (adapter: AdapterService, entry: Entry) => {
  const limits = limitsOf(entry)
  return admit("postgres", { sql: entry.sql, params: entry.params ?? [] }).pipe(
    Effect.flatMap((query) => adapter.query(query, limits)),
    Effect.timeoutFail({
      duration: limits.timeoutMs,
      onTimeout: () => new QueryFailed({ reason: "timeout", message: "The statement did not end in time." })
    })
  )
}

const role = (url: string) => new URL(url).username

/** The entry as it stands, and again in each time zone of the process and under each setting of the login. */
const runs = (
  entry: Entry
): ReadonlyArray<{ readonly tz?: string; readonly settings?: Record<string, string> }> => [
  {},
  ...(entry.tz ?? []).map((tz) => ({ tz })),
  ...(entry.settings ?? []).map((settings) => ({ settings }))
]

const inZone = <A, E, R>(tz: string | undefined, effect: Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      const before = process.env["TZ"]
      if (tz !== undefined) process.env["TZ"] = tz
      return before
    }),
    () => effect,
    (before) =>
      Effect.sync(() => {
        if (before === undefined) delete process.env["TZ"]
        else process.env["TZ"] = before
      })
  )

const withSettings = <A, E, R>(
  { admin, writer }: TestServer.TestDatabase,
  settings: Record<string, string> | undefined,
  effect: Effect.Effect<A, E, R>
) =>
  settings === undefined
    ? effect
    : Effect.acquireUseRelease(
        Effect.promise(() =>
          TestServer.runAs(
            admin,
            Object.entries(settings).map(
              ([name, value]) => `alter role ${role(writer)} set ${name} = '${value}'`
            )
          )
        ),
        () => effect,
        () => Effect.promise(() => TestServer.runAs(admin, [`alter role ${role(writer)} reset all`]))
      )

/** Locales that the server's machine does not have, and extensions that it lacks. */
const unavailable = (error: unknown): boolean =>
  error instanceof Error && /invalid value for parameter "lc_|is not available/.test(error.message)

const former = 15
const binaries = TestServer.installed(former)

for (const [name, server] of [
  ["handed cases", TestServer.layer],
  ...(binaries === null
    ? []
    : [[`handed cases on PostgreSQL ${former}`, TestServer.layerOf(binaries)] as const])
] as const)
  layer(server, { timeout: 120_000, excludeTestServices: true })(name, (it) => {
    const arranged = <A, E>(
      context: TestContext,
      entry: Entry,
      check: (adapter: AdapterService, database: TestServer.TestDatabase) => Effect.Effect<A, E, Scope>,
      { poor = false, settings = {} as Record<string, string> } = {}
    ) =>
      Effect.gen(function* () {
        const database = yield* TestServer.Database
        if ((entry.minVersion ?? 0) > database.version)
          return context.skip(`needs version ${entry.minVersion}`)
        const login = poor ? role(database.poor) : undefined
        yield* Effect.tryPromise({
          try: () =>
            TestServer.runAs(database.writer, [
              ...(entry.setup ?? []),
              ...(entry.setup && login ? [`grant usage on schema public to ${login}`] : [])
            ]),
          catch: (error) => error
        }).pipe(
          Effect.catchIf(unavailable, () => Effect.sync(() => context.skip("an extension is not installed"))),
          Effect.orDie
        )
        for (const run of runs(entry)) {
          const wanted = { ...settings, ...run.settings }
          yield* withSettings(
            database,
            Object.keys(wanted).length > 0 ? wanted : undefined,
            inZone(
              run.tz,
              Effect.scoped(
                Effect.flatMap(
                  Postgres.make(TestServer.configOf(poor ? database.poor : database.writer)),
                  (adapter) => check(adapter, database)
                )
              )
            )
          ).pipe(
            Effect.catchAllDefect((defect) =>
              unavailable(defect)
                ? Effect.promise(() =>
                    context.annotate(`not run: ${JSON.stringify(wanted)} is not on this machine`)
                  )
                : Effect.die(defect)
            )
          )
        }
      })

    describe("values", () => {
      for (const entry of read<ValueEntry>("values")) {
        it.effect(`${entry.id} ${entry.sql.slice(0, 60)}`, (context) =>
          arranged(context, entry, (adapter) =>
            Effect.gen(function* () {
              const result = yield* ask(adapter, entry)
              expect(result.columns).toEqual(entry.columns)
              expect(result.columnTypes).toEqual(entry.columnTypes)
              if (entry.rows) {
                // 0 and -0 are equal in JSON.
                expect(JSON.parse(JSON.stringify(result.rows))).toEqual(entry.rows)
              }
              if (entry.rowCountRange) {
                expect(result.rows.length).toBeGreaterThanOrEqual(entry.rowCountRange[0])
                expect(result.rows.length).toBeLessThanOrEqual(entry.rowCountRange[1])
              }
              if (entry.truncated !== undefined) expect(result.truncatedBy !== null).toBe(entry.truncated)
              if (entry.truncatedBy) expect(result.truncatedBy).toBe(entry.truncatedBy)
              if (entry.truncatedCells) expect(result.truncatedCells).toEqual(entry.truncatedCells)
            })
          )
        )
      }
    })

    describe("errors", () => {
      /** What an entry's `how` asks for. */
      const holding: Record<string, ReadonlyArray<string>> = {
        "pg-e-048": ["begin", "lock table mcpv_lock1 in access exclusive mode"],
        "pg-e-049": ["begin", "select * from mcpv_lock2 for update"],
        "pg-e-050": ["create table if not exists mcpv_lock1 (a integer)", "begin", "lock table mcpv_lock1"]
      }
      const settings: Record<string, Record<string, string>> = {
        "pg-e-048": { lock_timeout: "200ms" },
        "pg-e-054": { temp_file_limit: "1MB", work_mem: "64kB" }
      }
      const hold = (url: string, statements: ReadonlyArray<string>) =>
        Effect.acquireRelease(
          Effect.promise(async () => {
            const client = new pg.Client({ connectionString: url })
            await client.connect()
            for (const text of statements) await client.query(text)
            return client
          }),
          (client) => Effect.promise(() => client.end())
        )

      for (const entry of read<ErrorEntry>("errors")) {
        it.effect(`${entry.id} ${entry.sql.slice(0, 60)}`, (context) =>
          arranged(
            context,
            entry,
            (adapter, { writer }) =>
              Effect.gen(function* () {
                const statements = holding[entry.id]
                if (statements !== undefined) yield* hold(writer, statements)
                const answer = yield* Effect.either(ask(adapter, entry))
                if (Either.isRight(answer)) return expect(answer.right).toBe("an error")
                const error = answer.left
                const category = {
                  QueryFailed: "query_failed",
                  QueryRejected: "query_rejected",
                  ConnectionFailed: "connection_failed"
                }[error._tag]
                if (category === entry.alsoCategory) return
                expect({ category, reason: error.reason, message: error.message }).toMatchObject({
                  category: entry.category,
                  reason: expect.toBeOneOf([entry.reason, ...(entry.reasonAlso ?? [])])
                })
                if (entry.engineCode !== undefined && error.engine?.code !== undefined) {
                  expect(error.engine.code).toBeOneOf([entry.engineCode, ...(entry.engineCodeAlso ?? [])])
                }
                if (entry.position !== undefined) expect(error.engine?.position).toBe(entry.position)
                if (entry.messageMatches !== undefined)
                  expect(error.message).toMatch(new RegExp(entry.messageMatches))
                const again = yield* ask(adapter, { id: "", sql: "select 1" })
                expect(again.rows).toEqual([[1]])
              }),
            { poor: entry.how?.startsWith("log in as a role") === true, settings: settings[entry.id] ?? {} }
          )
        )
      }
    })
  })
