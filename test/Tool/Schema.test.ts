/** The tool `schema` of the running server: its arguments, its levels, several sources, and its size. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { beforeAll, describe, expect, it } from "vitest"
import { errorOf, valueOf } from "../support/Answer.js"
import { connect, type TestClient } from "../support/Client.js"
import { fill, folder } from "../support/Folder.js"
import { objectOf, schemaOf } from "../support/Schema.js"

const place = folder()
const shop = fill(
  join(place, "shop.db"),
  "create table customers (id integer primary key, name text not null)",
  "create table orders (id integer primary key, customer_id int references customers)",
  "insert into customers values (1, 'Ada'), (2, 'Grace')"
)
const workbook = fileURLToPath(new URL("../workbooks/survey-export.xlsx", import.meta.url))
const text = fileURLToPath(new URL("../workbooks/small.csv", import.meta.url))

let one: TestClient
let five: TestClient
beforeAll(async () => {
  writeFileSync(
    join(place, "five.json"),
    JSON.stringify({
      sources: {
        shop: { engine: "sqlite", file: "shop.db", description: "customers and their orders" },
        survey: { engine: "excel", file: workbook, description: "answers of visitors" },
        small: { engine: "csv", file: text },
        crm: { engine: "postgres", url: "postgres://reader:none@127.0.0.1:1/crm", description: "contacts" },
        gone: { engine: "sqlite", file: "gone.db", description: "d".repeat(500) }
      }
    })
  )
  ;[one, five] = await Promise.all([
    connect([`shop=${shop}`]),
    connect(["--config", join(place, "five.json")])
  ])
})

describe("with one source", () => {
  it("takes the source or leaves it out", async () => {
    const names = { names: { table: ["customers", "orders"] }, truncated: false }
    expect(schemaOf(await one.call("schema", {}))).toEqual(names)
    expect(schemaOf(await one.call("schema", { source: "shop" }))).toEqual(names)
    expect(schemaOf(await one.call("schema", { name: "" }))).toEqual(names)
  })

  it("answers columns for an exact name and names for a pattern, unless detail says otherwise", async () => {
    expect(objectOf(schemaOf(await one.call("schema", { name: "customers" }))).columns).toHaveLength(2)
    expect(schemaOf(await one.call("schema", { name: "cust*" })).names).toEqual({ table: ["customers"] })
    expect(schemaOf(await one.call("schema", { name: "customers", detail: "names" })).names).toEqual({
      table: ["customers"]
    })
    expect(schemaOf(await one.call("schema", { detail: "columns" })).objects).toHaveLength(2)
    expect(objectOf(schemaOf(await one.call("schema", { name: "customers", detail: "full" })))).toMatchObject(
      {
        referencedBy: ["orders(customer_id)"]
      }
    )
  })

  it("stops at the limit", async () => {
    expect(schemaOf(await one.call("schema", { limit: 1 }))).toMatchObject({ total: 2, truncated: true })
  })

  it("lists every fault of its arguments", async () => {
    const error = errorOf(await one.call("schema", { nam: "x", detail: "all", limit: 0, source: "crm" }))
    expect(error).toMatchObject({ category: "invalid_input" })
    expect(error.issues?.map(({ path, reason }) => `${path} ${reason}`).sort()).toEqual([
      "detail out_of_range",
      "limit out_of_range",
      "nam unknown_argument",
      "source unknown_source"
    ])
  })

  it("fails with unknown_table and the closest names", async () => {
    expect(errorOf(await one.call("schema", { name: "custmer" }))).toMatchObject({
      category: "query_failed",
      reason: "unknown_table",
      hint: "Closest names: customers.",
      source: "shop"
    })
  })

  it("sees a table that was made since", async () => {
    const file = fill(join(place, "grows.db"), "create table a (x)")
    const grows = await connect([file])
    expect(schemaOf(await grows.call("schema", {})).names).toEqual({ table: ["a"] })
    fill(file, "create table b (x)")
    expect(schemaOf(await grows.call("schema", {})).names).toEqual({ table: ["a", "b"] })
  })
})

describe("with several sources", () => {
  it("lists them where none is named", async () => {
    const list = {
      sources: [
        { id: "shop", engine: "sqlite", description: "customers and their orders" },
        { id: "survey", engine: "excel", description: "answers of visitors" },
        { id: "small", engine: "csv" },
        { id: "crm", engine: "postgres", description: "contacts" },
        { id: "gone", engine: "sqlite", description: "d".repeat(500) }
      ],
      truncated: false
    }
    expect(valueOf(await five.call("schema", {}))).toEqual(list)
    expect(valueOf(await five.call("schema", { name: "customers" }))).toEqual({
      ...list,
      notes: [expect.stringContaining("source")]
    })
  })

  it("answers of the one that is named, whatever state the others are in", async () => {
    expect(schemaOf(await five.call("schema", { source: "shop" })).names).toEqual({
      table: ["customers", "orders"]
    })
    expect(schemaOf(await five.call("schema", { source: "survey", name: "sit*" })).names).toEqual({
      sheet: ["Sites"]
    })
    expect(errorOf(await five.call("schema", { source: "gone" }))).toMatchObject({
      category: "connection_failed",
      reason: "file_not_found"
    })
    expect(errorOf(await five.call("schema", { source: "crm" }))).toMatchObject({
      category: "connection_failed",
      reason: "refused"
    })
  })

  it("keeps the list of tools under 5 kB", async () => {
    const list = await five.client.listTools()
    expect(Buffer.byteLength(JSON.stringify(list))).toBeLessThan(5000)
  })
})

describe("size", () => {
  it("names 2,000 tables in less than 64 kB", async () => {
    const file = fill(
      join(place, "many.db"),
      Array.from(
        { length: 2000 },
        (_, i) => `create table customer_order_${String(i).padStart(4, "0")} (id)`
      ).join(";")
    )
    const many = await connect([file])
    const answer = schemaOf(await many.call("schema", {}))
    expect(answer.names?.["table"]).toHaveLength(2000)
    expect(answer.truncated).toBe(false)
    expect(Buffer.byteLength(JSON.stringify(answer))).toBeLessThan(64_000)
  })
})
