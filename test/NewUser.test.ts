/**
 * A newcomer that knows nothing but the tools: from the list of sources over names and one table to the right query, in
 * four calls, each made from what the call before said.
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { beforeAll, describe, expect, it } from "vitest"
import { valueOf } from "./support/Answer.js"
import { connect, type TestClient } from "./support/Client.js"
import { fill, folder } from "./support/Folder.js"
import { objectOf, schemaOf } from "./support/Schema.js"

const place = folder()

interface Question {
  readonly about: RegExp
  readonly table: RegExp
  readonly column: RegExp
  /** Beside the column: the one to group by. */
  readonly by: RegExp
}

let client: TestClient
beforeAll(async () => {
  fill(
    join(place, "shop.db"),
    'create table "Order Items" (id integer primary key, "order" int, product text, "unit price" numeric, quantity int)',
    "create table customers (id integer primary key, name text)",
    `insert into "Order Items" ("order", product, "unit price", quantity) values
      (1, 'tea', 3, 2), (1, 'milk', 1, 1), (2, 'tea', 3, 5)`
  )
  writeFileSync(
    join(place, "config.json"),
    JSON.stringify({
      sources: {
        a: { engine: "sqlite", file: "shop.db", description: "what customers ordered" },
        b: {
          engine: "excel",
          file: fileURLToPath(new URL("workbooks/survey-export.xlsx", import.meta.url)),
          description: "answers of a survey among visitors"
        }
      }
    })
  )
  client = await connect(["--config", join(place, "config.json")])
})

/** Asks for the number of rows in each group, using nothing but what the tools answer. */
const newcomer = async ({ about, by, column, table }: Question) => {
  let calls = 0
  const call = (tool: string, args: object) => {
    calls++
    return client.call(tool, args)
  }
  const pick = (texts: ReadonlyArray<string>, wanted: RegExp): string => {
    const found = texts.find((text) => wanted.test(text))
    if (found === undefined) throw new Error(`Nothing like ${wanted} among ${texts.join(", ")}`)
    return found
  }

  const { sources } = valueOf(await call("schema", {})) as unknown as {
    sources: ReadonlyArray<{ id: string; engine: string; description: string }>
  }
  const source = sources.find(({ description }) => about.test(description))?.id
  const { names = {} } = schemaOf(await call("schema", { source }))
  const name = pick(Object.values(names).flat(), table)
  const object = objectOf(schemaOf(await call("schema", { source, name })))
  const columns = object.columns.map((each) => each.name)
  const group = pick(columns, by)
  const sql = `select ${group} as g, count(${pick(columns, column)}) as n from ${object.name} group by ${group} order by n desc, g limit 2`
  const value = valueOf(await call("query", { source, sql }))
  return { calls, rows: value.rows }
}

describe("a newcomer", () => {
  it("finds the right query on a database whose names need quotes", async () => {
    const question = { about: /ordered/, table: /items/i, column: /price/, by: /product/ }
    expect(await newcomer(question)).toEqual({
      calls: 4,
      rows: [
        { g: "tea", n: 2 },
        { g: "milk", n: 1 }
      ]
    })
    expect((await newcomer({ ...question, by: /^"?order"?$/ })).rows).toEqual([
      { g: 1, n: 2 },
      { g: 2, n: 1 }
    ])
  })

  it("finds it in a workbook", async () => {
    const { calls, rows } = await newcomer({
      about: /survey/,
      table: /respon/i,
      column: /satisfied/,
      by: /recommend/
    })
    expect(calls).toBe(4)
    expect(rows).toHaveLength(2)
  })
})
