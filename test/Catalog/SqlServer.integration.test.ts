/**
 * The catalog of a real SQL Server, or of Babelfish, which has no synonyms and folds names.
 * `MCP_QUERY_TEST_MSSQL_URL` names an administrator's login.
 */
import { randomBytes } from "node:crypto"
import { afterAll, beforeAll, describe, expect, it, vi } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import { Config, configFromUrl } from "../../src/Adapter/SqlServer/Config.js"
import { connect } from "../../src/Adapter/SqlServer/Connect.js"
import { execute } from "../../src/Adapter/SqlServer/Execution.js"
import type { Wire } from "../../src/Adapter/SqlServer/Wire.js"
import * as SqlServer from "../../src/Adapter/SqlServer.js"
import type { AdapterService } from "../../src/Adapter.js"
import * as Catalog from "../../src/Catalog.js"
import { errorOf } from "../support/Answer.js"
import { connect as connectClient } from "../support/Client.js"
import { objectOf } from "../support/Schema.js"
import { countStatements } from "../support/Statements.js"

const url = process.env["MCP_QUERY_TEST_MSSQL_URL"]

const engine = await Effect.runPromise(
  Effect.gen(function* () {
    if (url === undefined || url === "") return "none" as const
    const config = Either.getOrThrow(configFromUrl(Redacted.make(url)))
    const found = yield* Effect.either(
      Effect.scoped(Effect.flatMap(SqlServer.make(config), (adapter) => adapter.report))
    )
    if (Either.isLeft(found)) return "none" as const
    return found.right.version.includes("Babelfish") ? ("babelfish" as const) : ("mssql" as const)
  })
)

if (engine === "none")
  process.stderr.write(
    "SQL Server: no engine at MCP_QUERY_TEST_MSSQL_URL, the test of its catalog does not run " +
      "(start one: docker compose up mssql).\n"
  )

const setup: ReadonlyArray<string> = [
  "create schema sales",
  `create table customers (id int identity(1, 1) primary key, name nvarchar(40) not null, email varchar(100) unique,
    balance decimal(12, 2) default 0, status varchar(10) check (status in ('new', 'old')),
    shout as (upper(name)), made datetime2(3) default getdate(), data varbinary(max), note nvarchar(max))`,
  "create table sales.orders (a int not null, b varchar(10) not null, customer_id int references customers (id), primary key (b, a))",
  "create table sales.lines (a int, b varchar(10), n int, [select] int, foreign key (b, a) references sales.orders (b, a))",
  "create index lines_n on sales.lines (n desc) include (a)",
  "create table [order items] (id int, [unit price] money)",
  "create type zip from varchar(5) not null",
  "create table places (z zip, x float, r real, t time(3), o datetimeoffset(2), c char(3), n nchar(4), u uniqueidentifier)",
  "create view active as select id, name from customers",
  "exec sp_addextendedproperty 'MS_Description', 'People who buy', 'schema', 'dbo', 'table', 'customers'",
  "exec sp_addextendedproperty 'MS_Description', 'In full', 'schema', 'dbo', 'table', 'customers', 'column', 'name'"
]

describe.runIf(engine !== "none")(`SQL Server (${engine})`, () => {
  const database = `mcpq_catalog_${randomBytes(4).toString("hex")}`
  const scope = Effect.runSync(Scope.make())
  let administrator: Wire
  let adapter: AdapterService

  const batch = (wire: Wire, sql: string) => Effect.runPromise(execute(wire, { sql, kind: "batch" }))

  beforeAll(async () => {
    const config = Either.getOrThrow(configFromUrl(Redacted.make(url ?? "")))
    administrator = await Effect.runPromise(connect(config))
    await batch(administrator, `create database ${database}`)
    const inDatabase = new Config({ ...config, database })
    const owner = await Effect.runPromise(connect(inDatabase))
    for (const sql of setup) await batch(owner, sql)
    if (engine === "mssql") await batch(owner, "create synonym buyers for dbo.customers")
    owner.close()
    adapter = await Effect.runPromise(Scope.extend(SqlServer.make(inDatabase), scope))
  })

  afterAll(async () => {
    await Effect.runPromise(Scope.close(scope, Exit.void))
    if (engine === "mssql")
      await batch(administrator, `alter database ${database} set single_user with rollback immediate`)
    await Effect.runPromise(
      execute(administrator, { sql: `drop database ${database}`, kind: "batch" }).pipe(
        Effect.retry(Schedule.intersect(Schedule.spaced("500 millis"), Schedule.recurs(60)))
      )
    )
    administrator.close()
  })

  const look = (request: Omit<Catalog.SchemaRequest, "maxBytes"> = {}) =>
    Effect.suspend(() => Catalog.lookUp(adapter, { maxBytes: 100_000, ...request }))
  const one = (name: string, detail?: Catalog.Detail) => Effect.map(look({ name, detail }), objectOf)

  it.live("lists names by kind, bare in the login's own schema", () =>
    Effect.gen(function* () {
      const { value, statements } = yield* countStatements(look())
      expect(value).toMatchObject({
        names: {
          table: ["customers", "[order items]", "places", "sales.lines", "sales.orders"],
          view: ["active"],
          ...(engine === "mssql" ? { synonym: ["buyers"] } : {})
        },
        comments: { customers: "People who buy" },
        truncated: false
      })
      expect(statements).toBe(1)
    })
  )

  it.live("finds names by patterns and by any way to write them", () =>
    Effect.gen(function* () {
      expect((yield* look({ name: "sales.*" })).names).toEqual({ table: ["sales.lines", "sales.orders"] })
      for (const name of ["order items", "[order items]", "[dbo].[Order Items]", "dbo.order items"])
        expect((yield* one(name)).name).toBe("[order items]")
      expect(yield* Effect.flip(look({ name: "custmers" }))).toMatchObject({
        reason: "unknown_table",
        hint: "Closest names: customers."
      })
    })
  )

  it.live("describes columns with types, identities, defaults, computed columns and comments", () =>
    Effect.gen(function* () {
      const { value, statements } = yield* countStatements(one("customers"))
      expect(value).toMatchObject({
        comment: "People who buy",
        columns: [
          { name: "id", type: "int", nullable: false, identity: "always" },
          { name: "name", type: "nvarchar(40)", nullable: false, comment: "In full" },
          { name: "email", type: "varchar(100)" },
          { name: "balance", type: "decimal(12,2)", default: "0" },
          { name: "status", type: "varchar(10)" },
          { name: "shout", generated: expect.stringMatching(/^upper\(\[?name\]?\)$/i) },
          { name: "made", type: "datetime2(3)", default: "getdate()" },
          { name: "data", type: "varbinary(max)" },
          { name: "note", type: "nvarchar(max)" }
        ],
        primaryKey: ["id"],
        unique: [["email"]],
        checks: [expect.stringMatching(/new/)]
      })
      expect(statements).toBeLessThanOrEqual(4)
      expect((yield* one("places")).columns.map(({ base, type }) => [type, base])).toEqual([
        ["zip", "varchar(5)"],
        ["float", undefined],
        ["real", undefined],
        ["time(3)", undefined],
        ["datetimeoffset(2)", undefined],
        ["char(3)", undefined],
        ["nchar(4)", undefined],
        ["uniqueidentifier", undefined]
      ])
    })
  )

  it.live("describes keys, indexes, references and views in full, within four statements", () =>
    Effect.gen(function* () {
      const { value, statements } = yield* countStatements(look({ name: "*", detail: "full" }))
      expect(statements).toBeLessThanOrEqual(4)
      const find = (name: string) => value.objects?.find((object) => object.name === name)
      expect(find("sales.orders")).toMatchObject({
        primaryKey: ["b", "a"],
        foreignKeys: [{ columns: ["customer_id"], references: "customers(id)" }],
        referencedBy: ["sales.lines(b, a)"]
      })
      expect(find("sales.lines")).toMatchObject({
        foreignKeys: [{ columns: ["b", "a"], references: "sales.orders(b, a)" }],
        indexes: [{ name: expect.stringMatching(/^lines_n/), columns: ["n desc"], include: ["a"] }]
      })
      expect(find("customers")?.referencedBy).toEqual(["sales.orders(customer_id)"])
      expect(find("active")).toMatchObject({
        kind: "view",
        definition: expect.stringMatching(/select id, name/i)
      })
    })
  )

  it.runIf(engine === "mssql")("says what a synonym stands for, and how many rows there are", async () => {
    expect(await Effect.runPromise(one("buyers"))).toMatchObject({
      kind: "synonym",
      target: "[dbo].[customers]"
    })
    expect(await Effect.runPromise(one("customers"))).toMatchObject({ rows: 0 })
  })

  it.live("gives hints under the running server", () =>
    Effect.promise(async () => {
      const address = Object.assign(new URL(url ?? ""), { pathname: `/${database}` }).href
      const client = await connectClient(["erp=env:ERP_URL"], { env: { ERP_URL: address } })
      // A cold catalog may take longer than a hint may; then a later failure has it.
      const hintFor = (sql: string, part: string) =>
        vi.waitFor(async () => expect(errorOf(await client.query(sql)).hint).toContain(part), 60_000)
      await hintFor("select * from sales.ordrs", "Closest names: sales.orders.")
      await hintFor("select custmer_id from sales.orders", "Closest columns: customer_id.")
    })
  )
})
