/** Arguments that are long in the worst way: the call is answered, and so is everything behind it. */
import { join } from "node:path"
import { beforeAll, describe, expect, it } from "vitest"
import { fill, folder } from "../support/Folder.js"
import { Program } from "../support/Program.js"

const shop = fill(join(folder(), "shop.db"), "create table orders (id integer, placed text)")

let server: Program
beforeAll(async () => {
  server = await new Program([shop]).initialize()
})

/** The error or the facts of a call that was sent with a ping behind it; both are waited for. */
const answerOf = async (name: string, args: object) => {
  const call = server.begin("tools/call", { name, arguments: args })
  const ping = server.begin("ping")
  await server.answer(ping)
  return (await server.answerTo(call)) as { readonly error?: { readonly reason: string } }
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
