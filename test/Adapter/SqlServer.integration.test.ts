/**
 * The handed cases, limits and cancellation on a real engine: SQL Server, or Babelfish, whose gaps are left out by name.
 * `MCP_QUERY_TEST_MSSQL_URL` names an administrator's login.
 */
import { randomBytes } from "node:crypto"
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import { Config, configFromUrl } from "../../src/Adapter/SqlServer/Config.js"
import { connect } from "../../src/Adapter/SqlServer/Connect.js"
import { execute } from "../../src/Adapter/SqlServer/Execution.js"
import { unmappedNumber } from "../../src/Adapter/SqlServer/Failure.js"
import type { Wire } from "../../src/Adapter/SqlServer/Wire.js"
import { make } from "../../src/Adapter/SqlServer.js"
import type { AdapterService, CallLimits, Parameter } from "../../src/Adapter.js"
import * as Policy from "../../src/Policy.js"
import type { AdapterFailure } from "../../src/QueryError.js"
import errors from "../cases/errors.mssql.json" with { type: "json" }
import policy from "../cases/policy.mssql.json" with { type: "json" }
import values from "../cases/values.mssql.json" with { type: "json" }
import { adapterContract } from "./AdapterContract.js"
import { startProxy } from "./SqlServer/Proxy.js"

const url = process.env["MCP_QUERY_TEST_MSSQL_URL"]

/** Whether the engine answers, and which it is. */
const engine = await Effect.runPromise(
  Effect.gen(function* () {
    if (url === undefined || url === "") return "none" as const
    const config = Either.getOrThrowWith(
      configFromUrl(Redacted.make(url)),
      (problems) => new Error(JSON.stringify(problems))
    )
    const found = yield* Effect.either(
      Effect.scoped(Effect.flatMap(make(config), (adapter) => adapter.report))
    )
    if (Either.isLeft(found)) return "none" as const
    return found.right.version.includes("Babelfish") ? ("babelfish" as const) : ("mssql" as const)
  })
)

if (engine === "none")
  process.stderr.write(
    "SQL Server: no engine at MCP_QUERY_TEST_MSSQL_URL, its integration tests do not run " +
      "(start one: docker compose up mssql).\n"
  )

const limits: CallLimits = {
  maxRows: 1000,
  maxBytes: 2 ** 22,
  maxCellBytes: 16_384,
  timeoutMs: 30_000,
  format: "columnar"
}

interface Entry {
  readonly id: string
  readonly sql: string
  readonly verified?: string
  readonly setup?: ReadonlyArray<string>
  readonly params?: ReadonlyArray<Parameter>
  readonly limits?: Partial<CallLimits>
  readonly how?: string
}

interface ValueEntry extends Entry {
  readonly columns?: ReadonlyArray<string>
  readonly columnTypes?: ReadonlyArray<string>
  readonly rows?: ReadonlyArray<ReadonlyArray<unknown>>
  readonly rowCountRange?: ReadonlyArray<number>
  readonly truncatedBy?: string
  readonly truncatedCells?: ReadonlyArray<unknown>
}

interface ErrorEntry extends Entry {
  readonly category: string
  readonly reason: string
  readonly alsoCategory?: string
  readonly reasonAlso?: ReadonlyArray<string>
  readonly engineCode?: string
  readonly engineCodeAlso?: ReadonlyArray<string>
  readonly babelfish?: string
  readonly babelfishReasonAlso?: ReadonlyArray<string>
}

/** What Babelfish is known to do otherwise is not asked of it; what the server decides by itself is. */
const isGap = (entry: Entry & { readonly category?: string; readonly reason?: string }) =>
  engine === "babelfish" &&
  entry.verified === "reasoned" &&
  entry.category !== "query_rejected" &&
  entry.reason !== "parameters"

const categories: Record<AdapterFailure["_tag"], string> = {
  ConnectionFailed: "connection_failed",
  QueryFailed: "query_failed",
  QueryRejected: "query_rejected"
}

/** decimal and numeric are one type with two names. */
const typeNames = (types: ReadonlyArray<string | null> | undefined) =>
  types?.map((type) => (type === "numeric" ? "decimal" : type))

const cross = (digits: number) =>
  Array.from({ length: digits }, (_, i) => `(values (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)) t${i}(d)`).join(
    " cross join "
  )

describe.runIf(engine !== "none")(`SQL Server (${engine})`, () => {
  const database = `mcpq_test_${randomBytes(4).toString("hex")}`
  const scope = Effect.runSync(Scope.make())
  let administrator: Wire
  let owner: Wire
  let adapter: AdapterService
  let subject: Config

  const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>) =>
    Effect.runPromise(Scope.extend(effect, scope))
  const batch = (wire: Wire, sql: string) => Effect.runPromise(execute(wire, { sql, kind: "batch" }))
  const query = (entry: Pick<Entry, "sql" | "params" | "limits">) =>
    Effect.flatMap(Policy.admit("mssql", { sql: entry.sql, params: entry.params ?? [] }), (admitted) =>
      adapter.query(admitted, { ...limits, ...entry.limits })
    )

  beforeAll(async () => {
    const config = Either.getOrThrow(configFromUrl(Redacted.make(url ?? "")))
    administrator = await Effect.runPromise(connect(config))
    await batch(administrator, `CREATE DATABASE ${database}`)
    const inDatabase = new Config({ ...config, database })
    owner = await Effect.runPromise(connect(inDatabase))
    if (engine === "mssql") {
      // A login that may do everything in this database, so that it is the policy that must hold.
      const password = `${randomBytes(12).toString("base64")}aA1`
      await batch(owner, `CREATE LOGIN ${database} WITH PASSWORD = N'${password}'`)
      await batch(owner, `CREATE USER ${database} FOR LOGIN ${database}`)
      await batch(owner, `ALTER ROLE db_owner ADD MEMBER ${database}`)
      subject = new Config({ ...inDatabase, user: database, password: Redacted.make(password) })
    } else {
      subject = inDatabase
    }
    adapter = await run(make(subject))
    for (const sql of policy.setup.admin) await batch(owner, sql)
  })

  afterAll(async () => {
    await Effect.runPromise(Scope.close(scope, Exit.void))
    owner.close()
    if (engine === "mssql")
      await batch(administrator, `ALTER DATABASE ${database} SET SINGLE_USER WITH ROLLBACK IMMEDIATE`)
    // A statement that the engine did not stop keeps the database until its own timeout.
    await Effect.runPromise(
      execute(administrator, { sql: `DROP DATABASE ${database}`, kind: "batch" }).pipe(
        Effect.retry(Schedule.intersect(Schedule.spaced("500 millis"), Schedule.recurs(60)))
      )
    )
    if (engine === "mssql") await batch(administrator, `DROP LOGIN ${database}`)
    administrator.close()
  })

  adapterContract<never, never>(it.scopedLive, {
    name: "contract",
    subject: Effect.gen(function* () {
      const proxy = yield* startProxy(subject.host, subject.port ?? 1433)
      const applicationName = `mcpq_${randomBytes(4).toString("hex")}`
      const made = yield* make(
        new Config({ ...subject, host: "127.0.0.1", port: proxy.port, applicationName })
      )
      const running =
        engine === "babelfish"
          ? `SELECT COUNT(*) FROM pg_catalog.pg_stat_activity WHERE state = 'active' AND application_name = '${applicationName}' AND query LIKE '%count_big%'`
          : `SELECT COUNT(*) FROM sys.dm_exec_requests r JOIN sys.dm_exec_sessions s ON s.session_id = r.session_id CROSS APPLY sys.dm_exec_sql_text(r.sql_handle) t WHERE s.program_name = '${applicationName}' AND t.text LIKE '%count_big%'`
      const isRunning = Effect.orDie(
        Effect.suspend(() => {
          let count: unknown
          const sink = {
            columns: () => {},
            row: ([cell]: ReadonlyArray<unknown>) => {
              count = cell
              return true
            }
          }
          return Effect.map(
            execute(administrator, { sql: running, kind: "batch", sink }),
            () => Number(count) > 0
          )
        })
      )
      return { adapter: made, isRunning, cutConnections: proxy.cut }
    }),
    unreachable: {
      reason: "refused",
      subject: Effect.suspend(() => make(new Config({ ...subject, host: "127.0.0.1", port: 1 })))
    },
    statements: {
      one: "select 1 as n",
      noRows: "select 1 as id, N'x' as name where 1 = 0",
      named: (names) =>
        `select ${names
          .map((name, i) => (name === "" ? `${i + 1}` : `${i + 1} as [${name.replaceAll("]", "]]")}]`))
          .join(", ")}`,
      numbers: (n) =>
        `with c(i) as (select 1 union all select i + 1 from c where i < ${n}) select i from c option (maxrecursion 0)`,
      endless:
        "with c(i) as (select cast(1 as bigint) union all select i + 1 from c) select i from c option (maxrecursion 0)",
      endlessText: `select replicate('x', 1000) as t from ${cross(9)}`,
      text: (n) => `select replicate(cast('x' as varchar(max)), ${n}) as t`,
      runaway: `select count_big(*) from ${cross(13)}`,
      echo: "select cast(@p1 as nvarchar(100)) as a, @p2 as b",
      write: "insert into items(id, name) values (99, N'x')",
      yes: "1",
      bytes: "0x0102ff"
    },
    values: [
      {
        what: "exact decimals and dates",
        sql: "select cast('1.10' as decimal(38, 10)) as a, cast('2024-02-29 13:05:01.5 +05:30' as datetimeoffset(3)) as b",
        rows: [["1.1000000000", "2024-02-29T13:05:01.5+05:30"]]
      }
    ],
    errors: [
      { sql: "select 1 +", category: "QueryFailed", reason: "syntax" },
      { sql: "select * from nosuch", category: "QueryFailed", reason: "unknown_table" },
      { sql: "select nme from items", category: "QueryFailed", reason: "unknown_column" },
      { sql: "select cast('abc' as int)", category: "QueryFailed", reason: "type_mismatch" },
      { sql: "select 1/0", category: "QueryFailed", reason: "division_by_zero", code: "8134" },
      { sql: "select @p1", category: "QueryFailed", reason: "parameters" },
      { sql: "select 1 select 2", category: "QueryRejected", reason: "multiple_statements" }
    ],
    // Babelfish sends a malformed name.
    impossibleNames: engine === "babelfish" ? ["😀"] : []
  })

  const prepare = async (entry: Entry) => {
    for (const sql of entry.setup ?? []) await batch(owner, sql)
  }

  describe("values", () => {
    for (const entry of values as ReadonlyArray<ValueEntry>)
      it.skipIf(isGap(entry))(`${entry.id} ${entry.sql.slice(0, 70)}`, async () => {
        await prepare(entry)
        const answer = await Effect.runPromise(query(entry))
        if (entry.columns !== undefined) expect(answer.columns).toEqual(entry.columns)
        if (entry.columnTypes !== undefined)
          expect(typeNames(answer.columnTypes)).toEqual(typeNames(entry.columnTypes))
        if (entry.rows !== undefined) expect(answer.rows).toEqual(entry.rows)
        const [least = 0, most = Number.POSITIVE_INFINITY] = entry.rowCountRange ?? []
        expect(answer.rows.length).toBeGreaterThanOrEqual(least)
        expect(answer.rows.length).toBeLessThanOrEqual(most)
        expect(answer.truncatedBy).toBe(entry.truncatedBy ?? null)
        expect(answer.truncatedCells).toEqual(entry.truncatedCells ?? [])
      })
  })

  describe("errors", () => {
    for (const entry of errors as ReadonlyArray<ErrorEntry>)
      it.skipIf(isGap(entry) || entry.how !== undefined)(
        `${entry.id} ${entry.sql.slice(0, 70)}`,
        async () => {
          await prepare(entry)
          const timeoutMs = entry.limits?.timeoutMs
          const failure = await Effect.runPromise(
            Effect.flip(query(entry)).pipe(
              // The caller's deadline, which the server keeps.
              timeoutMs === undefined
                ? (effect) => effect
                : Effect.timeoutTo({
                    duration: timeoutMs,
                    onSuccess: (failure) => failure,
                    onTimeout: () => "timeout" as const
                  })
            )
          )
          if (failure === "timeout") expect(entry.reason).toBe("timeout")
          else {
            expect([entry.category, entry.alsoCategory]).toContain(categories[failure._tag])
            const also = engine === "babelfish" ? (entry.babelfishReasonAlso ?? []) : []
            if (categories[failure._tag] === entry.category)
              expect([entry.reason, ...(entry.reasonAlso ?? []), ...also]).toContain(failure.reason)
            if (failure.engine?.code !== undefined && entry.engineCode !== undefined)
              expect([
                entry.engineCode,
                ...(entry.engineCodeAlso ?? []),
                ...(engine === "babelfish" ? [entry.babelfish, String(unmappedNumber)] : [])
              ]).toContain(failure.engine.code)
          }
          expect((await Effect.runPromise(query({ sql: "select 1" }))).rows).toEqual([[1]])
        }
      )
  })

  describe("policy", () => {
    interface Admitted extends Entry {
      readonly expect: string
      readonly rows?: number
    }
    for (const entry of policy.cases as ReadonlyArray<Admitted>)
      if (entry.expect === "admitted")
        it.skipIf(isGap(entry))(`${entry.id} ${entry.sql.slice(0, 70)}`, async () => {
          const answer = await Effect.runPromise(query(entry))
          if (entry.rows !== undefined) expect(answer.rows.length).toBe(entry.rows)
        })
  })

  describe("a transaction", () => {
    it("is always rolled back, also what the client's statements write", async () => {
      const sql = await run(adapter.client)
      await Effect.runPromise(sql`insert into audit(note) values (${"kept?"})`)
      const [kept] = await Effect.runPromise(
        sql<{ n: number }>`select count(*) as n from audit where note = ${"kept?"}`
      )
      expect(kept?.n).toBe(0)
    })
  })

  describe("cancellation", () => {
    it("an endless answer ends at its limit, over and over", async () => {
      for (let i = 0; i < 3; i++) {
        const answer = await Effect.runPromise(query({ sql: `select N'k' as v from ${cross(9)}` }))
        expect(answer.rows.length).toBe(1000)
        expect(answer.truncatedBy).toBe("max_rows")
      }
    })

    it("a running statement is given up at once, and the next call is answered", async () => {
      const fiber = Effect.runFork(
        query({ sql: `select count_big(*) from ${cross(13)}`, limits: { timeoutMs: 5000 } })
      )
      // The session is busy when another one can see its statement; asking for that needs rights that differ by engine.
      await new Promise((resolve) => setTimeout(resolve, 300))
      expect(Exit.isInterrupted(await Effect.runPromise(Fiber.interrupt(fiber)))).toBe(true)
      expect((await Effect.runPromise(query({ sql: "select 1" }))).rows).toEqual([[1]])
    })
  })

  it("has plans, and tells what the login may do", async () => {
    const admitted = await Effect.runPromise(
      Policy.admit("mssql", { sql: "select * from items where id = @p1", params: [1] })
    )
    expect((await Effect.runPromise(adapter.explain(admitted, limits))).length).toBeGreaterThan(0)
    const report = await Effect.runPromise(adapter.report)
    expect(report.login).not.toBeNull()
    expect(report.excessPrivileges.length).toBeGreaterThan(0)
    expect(report.leastPrivilege.join("\n")).toContain("GRANT SELECT ON SCHEMA::[dbo]")
  })
})
