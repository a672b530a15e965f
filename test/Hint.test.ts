/** What a failed or cut answer of the running server says about the next step. */
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { beforeAll, describe, expect, it } from "vitest"
import { errorOf, valueOf } from "./support/Answer.js"
import { connect, type TestClient } from "./support/Client.js"
import { fill, folder } from "./support/Folder.js"

const place = folder()
const shop = fill(
  join(place, "shop.db"),
  "create table customers (id integer primary key, name text, email text)",
  'create table "Order Items" (order_id int, quantity int)',
  "create table orders (id integer primary key, customer_id int, placed text)",
  "insert into orders (customer_id) values (1), (2), (3)"
)

let client: TestClient
let workbook: TestClient
beforeAll(async () => {
  const file = fileURLToPath(new URL("workbooks/survey-export.xlsx", import.meta.url))
  ;[client, workbook] = await Promise.all([connect([`shop=${shop}`]), connect([file])])
})

const hintOf = async (sql: string) => errorOf(await client.query(sql)).hint

describe("a table that does not exist", () => {
  it("brings the closest names, as SQL writes them", async () => {
    expect(await hintOf("select * from ordrs")).toBe("Closest names: orders.")
    expect(await hintOf("select * from main.custmers c")).toBe("Closest names: customers.")
    expect(await hintOf("select * from order_item")).toContain('"Order Items"')
  })

  it("brings all names where none is close and they are few", async () => {
    expect(await hintOf("select * from invoices")).toBe('The names are customers, "Order Items", orders.')
  })

  it("brings those of a workbook", async () => {
    expect(errorOf(await workbook.query("select * from [Respnses]")).hint).toBe("Closest names: Responses.")
  })

  it("does not count as a second attempt", async () => {
    const { correlationId } = errorOf(await client.query("select * from ordrs"))
    const line = client.log.find((entry) => entry["correlationId"] === correlationId)
    expect(line?.["attempts"]).toBe(1)
  })
})

describe("a column that does not exist", () => {
  it("brings the closest ones of the tables in the statement", async () => {
    expect(await hintOf("select nme from customers")).toBe(
      'Closest columns: name. Call schema with name "customers" to see its columns.'
    )
    expect(await hintOf("select c.emial, o.id from customers c join orders o on true")).toBe(
      "Closest columns: customers.email."
    )
    expect(await hintOf('select quantty from "Order Items"')).toBe(
      'Closest columns: quantity. Call schema with name "Order Items" to see its columns.'
    )
  })

  it("points at the schema where none is close", async () => {
    expect(await hintOf("select zzzzzz from customers")).toBe(
      'Call schema with name "customers" to see its columns.'
    )
    expect(await hintOf("select zzzzzz from (select 1)")).toBe(
      "Call schema with the table's name to see its columns."
    )
  })

  it("takes no keyword for a table of that name", async () => {
    const file = fill(
      join(place, "odd.db"),
      'create table "select" (id int)',
      'create table "order" (id int)'
    )
    const odd = await connect([`odd=${file}`])
    const hintOf = async (sql: string) => errorOf(await odd.query(sql)).hint
    expect(await hintOf("select zzzzzz from (select 1) order by 1")).toBe(
      "Call schema with the table's name to see its columns."
    )
    expect(await hintOf('select zzzzzz from "order"')).toBe(
      'Call schema with name "order" to see its columns.'
    )
    await odd.close()
  })

  it("brings those of a sheet", async () => {
    expect(errorOf(await workbook.query("select Submited from Responses")).hint).toContain(
      "Closest columns: Submitted."
    )
  })
})

describe("a syntax error", () => {
  it("has its line and column where the engine's word stands once", async () => {
    expect(errorOf(await client.query("select *\n  form orders\nwhere id = 1"))).toMatchObject({
      reason: "syntax",
      engine: { line: 2, column: 3 },
      hint: "Line 2, column 3: form orders"
    })
    expect(errorOf(await client.query("select '😀',,1")).engine).toMatchObject({ code: "SQLITE_ERROR" })
    expect(errorOf(await client.query("select 1 from orders where "))).toMatchObject({
      engine: { line: 1, column: 27 },
      hint: "Line 1, column 27: the end of the statement."
    })
  })

  it("has none where the word stands more than once", async () => {
    expect(errorOf(await client.query("select from from orders")).engine).toEqual({ code: "SQLITE_ERROR" })
  })

  it("counts characters, not units", async () => {
    expect(errorOf(await client.query("select '😀😀' form orders o o2")).engine).toMatchObject({
      line: 1,
      column: 18
    })
  })
})

describe("what was cut or stopped", () => {
  it("says how to get the rest", async () => {
    const { notes } = valueOf(await client.query({ sql: "select * from orders", maxRows: 2 }))
    expect(notes).toEqual([expect.stringMatching(/^There are more rows than these 2: .*LIMIT/)])
    expect(valueOf(await client.query({ sql: "select * from orders", maxRows: 3 })).notes).toBeUndefined()
    const cut = valueOf(await client.query("select replace(hex(zeroblob(40000)), '0', 'x') as x"))
    expect(cut.notes).toEqual([expect.stringContaining("substr")])
  })

  it("says what to do about a statement that lasts too long", async () => {
    const sql = "with recursive n(i) as (select 1 union all select i + 1 from n) select sum(i) from n"
    expect(errorOf(await client.query({ sql, timeoutMs: 200 })).hint).toContain("timeoutMs")
  })
})
