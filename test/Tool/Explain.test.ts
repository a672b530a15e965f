/** The tool `explain` of the running server on SQLite and a workbook: a plan, and nothing is executed. */
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { beforeAll, describe, expect, it } from "vitest"
import { type Answer, errorOf, valueOf } from "../support/Answer.js"
import { connect, type TestClient } from "../support/Client.js"
import { fill, folder } from "../support/Folder.js"

const place = folder()
const shop = fill(
  join(place, "shop.db"),
  "create table customers (id integer primary key, name text)",
  "create table orders (id integer primary key, customer_id int, placed text)",
  "create index orders_customer on orders (customer_id)"
)

const planOf = (answer: Answer) => (valueOf(answer) as unknown as { plan: ReadonlyArray<string> }).plan

let client: TestClient
let workbook: TestClient
beforeAll(async () => {
  const file = fileURLToPath(new URL("../workbooks/survey-export.xlsx", import.meta.url))
  ;[client, workbook] = await Promise.all([connect([`shop=${shop}`]), connect([file])])
})

describe("explain", () => {
  it("gives a line for each step, indented below the step it belongs to", async () => {
    expect(
      planOf(
        await client.call("explain", {
          sql: "select * from customers c join orders o on o.customer_id = c.id where c.id in (select 1 union select 2)"
        })
      )
    ).toEqual([
      "SEARCH c USING INTEGER PRIMARY KEY (rowid=?)",
      expect.stringMatching(/^LIST SUBQUERY/),
      expect.stringMatching(/^ {2}\S/),
      expect.stringMatching(/^ {4}\S/),
      expect.stringMatching(/^ {6}\S/),
      expect.stringMatching(/^ {4}\S/),
      expect.stringMatching(/^ {6}\S/),
      "SEARCH o USING INDEX orders_customer (customer_id=?)"
    ])
  })

  it("takes parameters, and does without them", async () => {
    const plan = ["SEARCH orders USING INTEGER PRIMARY KEY (rowid=?)"]
    const sql = "select * from orders where id = ?"
    expect(planOf(await client.call("explain", { sql, params: [1] }))).toEqual(plan)
    expect(planOf(await client.call("explain", { sql }))).toEqual(plan)
  })

  it.each(["; ;", "-- a\n;", "/* ; */", "\t"])(
    "takes a statement behind %j, as query does",
    async (before) => {
      const sql = `${before}select 1;;`
      for (const each of [client, workbook]) {
        expect(planOf(await each.call("explain", { sql }))).toEqual(["SCAN CONSTANT ROW"])
        expect(valueOf(await each.query({ sql, format: "columnar" })).rows).toEqual([[1]])
      }
      const pragma = `${before}pragma table_info(Responses)`
      expect(valueOf(await workbook.query({ sql: pragma })).rowCount).toBeGreaterThan(0)
    }
  )

  it("answers at once for a statement that would never end", async () => {
    const sql = "with recursive n(i) as (select 1 union all select i + 1 from n) select sum(i) from n"
    expect(planOf(await client.call("explain", { sql })).length).toBeGreaterThan(1)
  })

  it("explains statements about workbooks", async () => {
    expect(planOf(await workbook.call("explain", { sql: "select Site from Responses order by 1" }))).toEqual([
      "SCAN Responses",
      "USE TEMP B-TREE FOR ORDER BY"
    ])
  })

  it("refuses what may not be run, and what has no plan", async () => {
    for (const [sql, reason] of [
      ["delete from orders", "read_only"],
      ["select 1; select 2", "multiple_statements"],
      ["explain select 1", "statement_type"],
      ["-- a plan of a plan\n/* really */ EXPLAIN QUERY PLAN select 1", "statement_type"],
      ["pragma table_info(orders)", "statement_type"]
    ])
      expect(errorOf(await client.call("explain", { sql }))).toMatchObject({
        category: "query_rejected",
        reason
      })
  })

  it("names what does not exist, with the closest names", async () => {
    expect(errorOf(await client.call("explain", { sql: "select * from ordrs" }))).toMatchObject({
      category: "query_failed",
      reason: "unknown_table",
      hint: "Closest names: orders."
    })
  })
})
