/** Arguments that are long in the worst way: the call is answered, and so is everything behind it. */
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { beforeAll, describe, expect, it } from "vitest"
import type { ErrorAnswer } from "../support/Answer.js"
import { fill, folder } from "../support/Folder.js"
import { Program } from "../support/Program.js"

const shop = fill(join(folder(), "shop.db"), "create table orders (id integer, placed text)")

const book = fileURLToPath(new URL("../workbooks/survey-export.xlsx", import.meta.url))

let server: Program
let both: Program
beforeAll(async () => {
  ;[server, both] = await Promise.all([
    new Program([shop]).initialize(),
    new Program([`shop=${shop}`, `book=${book}`, "erp=mssql://nobody:nothing@127.0.0.1:1/none"]).initialize()
  ])
})

/** The error or the facts of a call that was sent with a ping behind it; both are waited for. */
const answerOf = async (name: string, args: object) => {
  const call = server.begin("tools/call", { name, arguments: args })
  const ping = server.begin("ping")
  await server.answer(ping)
  return (await server.answerTo(call)) as { readonly error?: ErrorAnswer }
}

describe("explain", () => {
  it.each([
    ["comments that can be taken apart in many ways", "/**/".repeat(40)],
    ["comments, as many as fit", "/**/".repeat(24_000)],
    ["line comments", "--\n".repeat(30_000)],
    ["openings of comments in one", `/*${" /*".repeat(30_000)}*/`]
  ])("takes a statement behind %s", async (_, before) => {
    expect(await answerOf("explain", { sql: `${before}select 1` })).toMatchObject({ ok: true })
    expect(await answerOf("explain", { sql: `${before}explain select 1` })).toMatchObject({
      error: { reason: "statement_type" }
    })
  })
})

describe("schema", () => {
  it.each([
    ["blanks in front of a bracket", `${" ".repeat(1999)}[`],
    ["quotes", '"'.repeat(1999)],
    ["stars", "*a".repeat(1000)]
  ])("looks for a name of %s", async (_, name) => {
    const answer = await answerOf("schema", { name })
    expect(answer.error?.reason ?? "unknown_table").toBe("unknown_table")
  })

  it("takes no name that is longer than any", async () => {
    expect(await answerOf("schema", { name: `${" ".repeat(20_000)}[` })).toMatchObject({
      error: {
        category: "invalid_input",
        reason: "out_of_range",
        issues: [{ path: "name", received: "a string of 20001 characters" }]
      }
    })
  })
})

describe("arguments", () => {
  const lengthOf = (answer: object) => JSON.stringify(answer).length

  it("tells the first of very many faults, and how many others there are", async () => {
    const sql = "select 1"
    const wrong = await answerOf("query", { sql, params: Array.from({ length: 60_000 }, () => ({})) })
    expect(wrong.error?.issues).toHaveLength(20)
    expect(wrong).toMatchObject({
      error: {
        category: "invalid_input",
        reason: "wrong_type",
        message: expect.stringMatching(
          /^There are 60000 faults; these are the first 20\. The argument params\[0\] must/
        ),
        issues: expect.arrayContaining([
          expect.objectContaining({ path: "params[0]", received: "an object" })
        ])
      }
    })
    const unknown = await answerOf("query", {
      ...Object.fromEntries(Array.from({ length: 100_000 }, (_, at) => [`key${at}`, at])),
      sql
    })
    expect(unknown.error?.issues).toHaveLength(20)
    expect(unknown.error?.message).toMatch(/^There are 100000 faults/)
    for (const answer of [wrong, unknown]) expect(lengthOf(answer)).toBeLessThan(8000)
  })

  it("takes as many values as an engine could, and looks at none of more", async () => {
    const params = Array.from({ length: 65_536 }, () => ({}))
    expect(await answerOf("query", { sql: "select 1", params })).toMatchObject({
      error: {
        reason: "out_of_range",
        issues: [
          { path: "params", expected: "an array of at most 65,535 values", received: "an array of 65536" }
        ]
      }
    })
    const most = Array.from({ length: 32_766 }, (_, at) => at)
    const sql = "select ?32766 as last"
    expect(await answerOf("query", { sql, params: most })).toMatchObject({
      value: { rows: [{ last: 32_765 }] }
    })
  })

  it("repeats no endless name or value", async () => {
    const key = "k".repeat(500_000)
    const answer = await answerOf("query", { sql: "select 1", [key]: key, maxRows: key, source: key })
    expect(answer.error?.issues?.map(({ path }) => path.length)).toEqual([101, 6, 7])
    expect(lengthOf(answer)).toBeLessThan(4000)
  })
})

describe("advice", () => {
  // Each of the ten took seconds.
  it.each([
    [
      "brackets that nothing closes",
      `select plced from orders /* ${"[".repeat(99_000)} */`,
      "unknown_column"
    ],
    ["a word in pieces of itself", `select 1 1 ${"aa ".repeat(1000)}`, "syntax"]
  ])("on a statement with %s", async (_, sql, reason) => {
    const calls = Array.from({ length: 10 }, () => server.beginQuery({ sql }))
    await server.answer(server.begin("ping"))
    for (const call of calls) expect(await server.answerTo(call)).toMatchObject({ error: { reason } })
  })
})

describe("a statement of", () => {
  const most = 99_000
  const many = (text: string, length = most) => text.repeat(Math.floor(length / text.length))
  const statements: ReadonlyArray<readonly [string, string]> = [
    ["nested comments", `${many("/*", 50_000)}${many("*/", 40_000)}select 1`],
    ["line comments", `${many("--\n")}select 1`],
    ["semicolons", `${many(";")}select 1`],
    ["parentheses", `select ${many("(", 49_000)}1${many(")", 49_000)}`],
    ["open parentheses", `select ${many("(")}`],
    ["brackets", `select * from ${many("[")}`],
    ["closed brackets", `select * from ${many("[]")}`],
    ["double quotes", `select ${many('"')}`],
    ["quoted names", `select ${many('"a" ')}`],
    ["single quotes", `select ${many("'")}`],
    ["backticks", `select ${many("`")}`],
    ["marks in a name", `select * from [${many("$!")}]`],
    ["dots", `select a${many(".a")}`],
    ["dots and blanks", `select a${many(" . a")}`],
    ["blanks", `select nme${many(" ")}from orders`],
    ["signs", `select 1${many("+-")}1`],
    ["sums", `select 1${many("+1")}`],
    ["calls", `select ${many("f(a,")}`],
    ["nested calls", `select ${many("f(", 49_000)}1${many(")", 40_000)}`],
    ["cases", `select ${many("case when 1 then ", 50_000)}1${many(" end", 40_000)}`],
    ["unions", `select 1${many(" union all select 1")}`],
    ["tables", `select * from ${many("orders,")}orders`],
    ["one long name", `select * from ${many("a")}`],
    ["digits", `select ${many("1")}`],
    ["exponents", `select 1${many("e1")}`],
    ["parameters", `select ${many("?,")}?`],
    ["variables", `select ${many("@p1,")}@p1`],
    ["colons", `select ${many(":a ")}`],
    ["keywords", `select ${many("case end select ")}`],
    ["opening quotation marks", `select 1 1 '${many("«„", 49_000)}`]
  ]
  it.each(statements)("%s holds nobody up", async (_, sql) => {
    const calls = ["shop", "book", "erp"].flatMap((source) => [
      both.beginQuery({ sql, source }),
      both.begin("tools/call", { name: "explain", arguments: { sql, source } })
    ])
    await both.answer(both.begin("ping"))
    for (const call of calls) {
      const answer = (await both.answerTo(call)) as { readonly error?: ErrorAnswer }
      expect(answer.error?.category).not.toBe("internal_error")
    }
  })
})
