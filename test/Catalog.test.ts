/** The catalogs of SQLite files, workbooks and delimited text, read through their adapters. */
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Excel from "../src/Adapter/Excel.js"
import * as Sqlite from "../src/Adapter/Sqlite.js"
import type { AdapterService } from "../src/Adapter.js"
import * as Catalog from "../src/Catalog.js"
import { fill, folder } from "./support/Folder.js"
import { columnTexts, objectOf } from "./support/Schema.js"
import { countStatements } from "./support/Statements.js"

const place = folder()
const maxBytes = 100_000

const decodeSqlite = Schema.decodeUnknownSync(Sqlite.Config)
const sqlite = (name: string, ...statements: ReadonlyArray<string>) =>
  Sqlite.make(decodeSqlite({ file: fill(join(place, name), ...statements) }))

const look = (adapter: AdapterService, request: Omit<Catalog.SchemaRequest, "maxBytes"> = {}) =>
  Catalog.lookUp(adapter, { maxBytes, ...request })

const one = (adapter: AdapterService, name: string, detail?: Catalog.Detail) =>
  Effect.map(look(adapter, { name, detail }), objectOf)

describe("SQLite", () => {
  const shop = sqlite(
    "shop.db",
    `create table customers (
      id integer primary key, name text not null, email text unique, status default 'new'
      check (status in ('new', 'old')), shout text as (upper(name)))`,
    `create table "Order Items" (order_id int, line int, qty int check (qty > 0),
      total int generated always as (qty * 2) stored,
      primary key (line, order_id), foreign key (order_id) references orders on delete cascade) without rowid`,
    `create table orders (id integer primary key, customer_id int references customers (id), "select" text,
      region text, foreign key (region, customer_id) references places (region, no), check (id > 0))`,
    "create table places (region text, no int, primary key (region, no))",
    `create unique index orders_c on orders (customer_id, lower("select") desc) where customer_id > 1`,
    "create view active as select id, name from customers where status = 'new'",
    "create virtual table notes using fts5 (title, body)",
    "create table strict_one (a any, b blob) strict",
    "insert into customers (name) values ('a'), ('b')",
    "insert into notes values ('t', 'b')",
    "create table sequenced (id integer primary key autoincrement)"
  )

  it.scopedLive("lists names by kind, without its own tables and those behind virtual tables", () =>
    Effect.gen(function* () {
      const { value, statements } = yield* countStatements(look(yield* shop))
      expect(value).toEqual({
        names: {
          table: ["customers", '"Order Items"', "orders", "places", "sequenced", "strict_one"],
          view: ["active"],
          virtual_table: ["notes"]
        },
        truncated: false
      })
      expect(statements).toBe(1)
    })
  )

  it.scopedLive("describes a table with its keys, checks, unique columns and rows", () =>
    Effect.gen(function* () {
      expect(yield* one(yield* shop, "customers")).toEqual({
        name: "customers",
        kind: "table",
        columns: [
          { name: "id", type: "INTEGER", nullable: false },
          { name: "name", type: "TEXT", nullable: false },
          { name: "email", type: "TEXT" },
          { name: "status", default: "'new'" },
          { name: "shout", type: "TEXT", generated: "upper(name)" }
        ],
        primaryKey: ["id"],
        unique: [["email"]],
        checks: ["status in ('new', 'old')"],
        rows: 2
      })
    })
  )

  it.scopedLive("describes it in full with indexes, referencing tables and its text", () =>
    Effect.gen(function* () {
      const adapter = yield* shop
      const { value, statements } = yield* countStatements(one(adapter, "orders", "full"))
      expect(value).toMatchObject({
        primaryKey: ["id"],
        foreignKeys: [
          { columns: ["customer_id"], references: "customers(id)" },
          { columns: ["region", "customer_id"], references: "places(region, no)" }
        ],
        checks: ["id > 0"],
        indexes: [
          {
            name: "orders_c",
            columns: ["customer_id", 'lower("select") desc'],
            unique: true,
            where: "customer_id > 1"
          }
        ],
        referencedBy: ['"Order Items"(order_id)'],
        definition: expect.stringMatching(/^CREATE TABLE orders/)
      })
      expect(columnTexts(value)).toContain('"select" TEXT')
      expect(statements).toBeLessThanOrEqual(4)
    })
  )

  it.scopedLive("knows tables without rowid, keys of several columns and computed columns", () =>
    Effect.gen(function* () {
      const adapter = yield* shop
      for (const name of ["Order Items", '"Order Items"', "[order items]", "main.Order Items"])
        expect(yield* one(adapter, name)).toMatchObject({
          name: '"Order Items"',
          primaryKey: ["line", "order_id"],
          foreignKeys: [{ columns: ["order_id"], references: "orders" }],
          checks: ["qty > 0"],
          rows: 0
        })
      const { columns } = yield* one(adapter, "Order Items")
      expect(columns[3]).toEqual({ name: "total", type: "INT", generated: "qty * 2" })
    })
  )

  it.scopedLive("knows views and virtual tables, without hidden columns", () =>
    Effect.gen(function* () {
      const adapter = yield* shop
      expect(columnTexts(yield* one(adapter, "active", "full"))).toEqual(["id INTEGER", "name TEXT"])
      expect((yield* one(adapter, "active", "full")).definition).toContain("where status = 'new'")
      expect(columnTexts(yield* one(adapter, "notes"))).toEqual(["title", "body"])
    })
  )

  it.scopedLive("answers a pattern at any level within four statements", () =>
    Effect.gen(function* () {
      const adapter = yield* shop
      expect(yield* look(adapter, { name: "ORDER*" })).toEqual({
        names: { table: ['"Order Items"', "orders"] },
        truncated: false
      })
      const { value, statements } = yield* countStatements(look(adapter, { name: "*", detail: "full" }))
      expect(value.objects?.length).toBe(8)
      expect(statements).toBeLessThanOrEqual(4)
    })
  )

  it.scopedLive("fails with the closest names for a name that nothing has", () =>
    Effect.gen(function* () {
      const adapter = yield* shop
      const { value: failure, statements } = yield* countStatements(
        Effect.flip(look(adapter, { name: "custmers" }))
      )
      expect(failure).toMatchObject({
        _tag: "QueryFailed",
        reason: "unknown_table",
        hint: "Closest names: customers."
      })
      expect(statements).toBe(2)
      expect((yield* Effect.flip(look(adapter, { name: "zzz" }))).hint).toContain("active, customers")
    })
  )

  it.scopedLive("does not stumble over an endless name", () =>
    Effect.gen(function* () {
      const adapter = yield* shop
      for (const name of ["x".repeat(300), "x".repeat(200_000), "%".repeat(60_000)]) {
        const failure = yield* Effect.flip(look(adapter, { name }))
        expect(failure).toMatchObject({ reason: "unknown_table" })
        expect(failure.message.length).toBeLessThan(300)
      }
    })
  )

  it.scopedLive("answers a pattern that nothing matches with advice", () =>
    Effect.gen(function* () {
      expect(yield* look(yield* shop, { name: "*custmer*" })).toEqual({
        names: {},
        truncated: false,
        notes: ['Nothing matches "*custmer*". Closest names: customers.']
      })
    })
  )

  it.scopedLive("cuts at the limit and says how many there are", () =>
    Effect.gen(function* () {
      const adapter = yield* shop
      expect(yield* look(adapter, { limit: 3 })).toEqual({
        names: { view: ["active"], table: ["customers"], virtual_table: ["notes"] },
        total: 8,
        truncated: true,
        notes: [expect.stringMatching(/^3 of 8 shown\./)]
      })
      const { objects, total } = yield* look(adapter, { name: "*", detail: "columns", limit: 2 })
      expect([objects?.length, total]).toEqual([2, 8])
    })
  )

  it.scopedLive("stays within the bytes of an answer, with one object that is too large, too", () =>
    Effect.gen(function* () {
      const columns = Array.from({ length: 900 }, (_, i) => `a_rather_long_column_name_${i} text not null`)
      const adapter = yield* sqlite("wide.db", `create table wide (${columns.join()})`, "create table x (a)")
      const named = yield* Catalog.lookUp(adapter, { maxBytes: 10 })
      expect(named).toMatchObject({ names: { table: ["wide"] }, total: 2, truncated: true })
      const described = yield* Catalog.lookUp(adapter, { name: "wide", detail: "full", maxBytes: 5000 })
      expect(JSON.stringify(described).length).toBeLessThan(5500)
      expect(described.truncated).toBe(true)
      expect(objectOf(described).notes?.[0]).toMatch(/^\d+ of 900 columns shown\.$/)
    })
  )

  it.scopedLive("estimates the rows of large tables, from ANALYZE or the span of rowids", () =>
    Effect.gen(function* () {
      const count = (n: number) =>
        `insert into t select i from (with recursive n(i) as (select 1 union all select i + 1 from n where i < ${n}) select i from n)`
      const spanned = yield* sqlite("spanned.db", "create table t (a)", count(30_000))
      expect((yield* one(spanned, "t")).rows).toBe(30_000)
      const analyzed = yield* sqlite(
        "analyzed.db",
        "create table t (a int primary key) without rowid",
        count(30_000),
        "analyze"
      )
      expect((yield* one(analyzed, "t")).rows).toBe(30_000)
      // Identifiers that say nothing about how many there are.
      const sparse = yield* sqlite(
        "sparse.db",
        "create table t (a integer primary key)",
        count(20_000),
        "update t set a = a * 100000000000"
      )
      expect((yield* one(sparse, "t")).rows).toBeUndefined()
    })
  )

  it.scopedLive("tells of a view whose table is gone, and of a module that is not here", () =>
    Effect.gen(function* () {
      const adapter = yield* sqlite(
        "broken.db",
        "create table gone (a)",
        "create view lost as select * from gone",
        "create table kept (a int)",
        "drop table gone",
        "create view fine as select * from kept"
      )
      expect(yield* one(adapter, "lost", "full")).toMatchObject({
        columns: [],
        notes: ["Its columns cannot be read: no such table: main.gone"],
        definition: expect.stringContaining("select * from gone")
      })
      const { value, statements } = yield* countStatements(look(adapter, { name: "*", detail: "full" }))
      expect(value.objects?.find(({ name }) => name === "kept")?.columns).toEqual([
        { name: "a", type: "INT" }
      ])
      expect(statements).toBeLessThanOrEqual(4)
    })
  )

  it.scopedLive("says so where there is nothing", () =>
    Effect.gen(function* () {
      const adapter = yield* sqlite("empty.db", "create table t (a)", "drop table t")
      expect(yield* look(adapter)).toEqual({ names: {}, truncated: false })
      expect((yield* Effect.flip(look(adapter, { name: "t" }))).hint).toContain("no tables or views")
    })
  )

  it.scopedLive("passes on that the file cannot be read", () =>
    Effect.gen(function* () {
      const adapter = yield* Sqlite.make(decodeSqlite({ file: join(place, "none.db") }))
      expect(yield* Effect.flip(look(adapter))).toMatchObject({
        _tag: "ConnectionFailed",
        reason: "file_not_found"
      })
    })
  )
})

const workbooks = fileURLToPath(new URL("workbooks/", import.meta.url))
const decodeExcel = Schema.decodeUnknownSync(Excel.Config)
const workbook = (file: string) => Excel.make(decodeExcel({ file: join(workbooks, file) }))

describe("workbooks", () => {
  it.scopedLive("list sheets, tables and names of a single range", () =>
    Effect.gen(function* () {
      const { value, statements } = yield* countStatements(look(yield* workbook("tables.xlsx")))
      expect(value).toEqual({
        names: {
          sheet: ["Data", "[Other Sheet]"],
          table: ["Sales", "NoHead"],
          name: ["TaxRate", "Block", "WholeCol", "Local", "__proto__"]
        },
        truncated: false,
        notes: [expect.stringContaining("xl_sheets")]
      })
      expect(statements).toBe(1)
    })
  )

  it.scopedLive("describe a sheet with the header row found, types and the letters of its columns", () =>
    Effect.gen(function* () {
      const adapter = yield* workbook("layout.xlsx")
      const { value, statements } = yield* countStatements(one(adapter, "[Title Rows]"))
      expect(value).toEqual({
        name: "[Title Rows]",
        kind: "sheet",
        columns: [
          { name: "id", type: "ANY", letter: "A" },
          { name: "name", type: "TEXT", letter: "B" },
          { name: "amount", type: "REAL", letter: "C" }
        ],
        rows: 4,
        headerRow: 4
      })
      expect(statements).toBeLessThanOrEqual(4)
      expect(yield* one(adapter, "hidden")).toMatchObject({ name: "Hidden", hidden: true })
      expect((yield* one(adapter, "NoHeader")).notes).toEqual([expect.stringContaining("No header row")])
      expect((yield* one(adapter, "売上 2024")).columns.map(({ name }) => name)).toEqual(["[製品]", "[金額]"])
      expect(yield* one(adapter, "sqlite_reserved")).toMatchObject({ kind: "sheet" })
    })
  )

  it.scopedLive("describe tables, names and ranges that are asked for", () =>
    Effect.gen(function* () {
      const adapter = yield* workbook("tables.xlsx")
      expect(yield* one(adapter, "Sales")).toMatchObject({ kind: "table", rows: 3, range: "Data!A1:C5" })
      expect(yield* one(adapter, "taxrate")).toMatchObject({ kind: "name", range: "Data!$H$1" })
      const { value, statements } = yield* countStatements(one(adapter, "Data!A1:B2"))
      expect(value).toMatchObject({
        name: "[Data!A1:B2]",
        kind: "range",
        columns: [{ name: "A" }, { name: "B" }]
      })
      expect(statements).toBeLessThanOrEqual(4)
      expect(yield* Effect.flip(look(adapter, { name: "Nope!A1:B2" }))).toMatchObject({
        reason: "unknown_table"
      })
      expect(yield* Effect.flip(look(adapter, { name: "Sale" }))).toMatchObject({
        hint: expect.stringContaining("Sales")
      })
    })
  )

  it.scopedLive("describe all sheets at once within four statements, and types as answers have them", () =>
    Effect.gen(function* () {
      const adapter = yield* workbook("survey-export.xlsx")
      const { value, statements } = yield* countStatements(look(adapter, { name: "*", detail: "columns" }))
      expect(value.objects?.map(({ name, rows }) => [name, rows])).toEqual([
        ["Responses", 40],
        ["Sites", 4],
        ["Questions", 4]
      ])
      expect(value.objects?.[0]?.columns.find(({ letter }) => letter === "H")).toEqual({
        name: "[May we contact you?]",
        type: "BOOLEAN",
        letter: "H"
      })
      expect(statements).toBeLessThanOrEqual(4)
    })
  )

  it.scopedLive("have delimited text as one table", () =>
    Effect.gen(function* () {
      const adapter = yield* Excel.make(decodeExcel({ file: join(workbooks, "small.csv"), engine: "csv" }))
      expect(yield* look(adapter)).toEqual({ names: { table: ["small"] }, truncated: false })
      expect(yield* one(adapter, "small")).toEqual({
        name: "small",
        kind: "table",
        columns: [
          { name: "id", type: "INTEGER" },
          { name: "name", type: "TEXT" },
          { name: "[when]", type: "TEXT" }
        ],
        rows: 2,
        headerRow: 1
      })
    })
  )
})
