/** Every fenced block of the README is run or decoded here; a block that no test knows makes the first test fail. */
import { execFile } from "node:child_process"
import { copyFileSync, readFileSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { beforeAll, describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import packageJson from "../package.json" with { type: "json" }
import { LogEntry } from "../src/CallLog.js"
import { write as writeShop } from "../src/Demo/ShopDatabase.js"
import { QueryResult } from "../src/QueryResult.js"
import { connect, mainFile } from "./support/Client.js"
import { folder } from "./support/Folder.js"

const run = promisify(execFile)
const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8")
const blocks = [...readme.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, language = "", text = ""]) => ({
  language,
  text
}))
const jsonBlocks = blocks.filter(({ language }) => language === "json").map(({ text }) => JSON.parse(text))
const shellLines = blocks
  .filter(({ language }) => language === "sh")
  .flatMap(({ text }) => text.trim().split("\n"))
  .map((line) => line.replace(/\s+#.*$/, ""))

const known = (block: object, ...keys: ReadonlyArray<string>) => keys.every((key) => key in block)
const find = (...keys: ReadonlyArray<string>) => jsonBlocks.filter((block) => known(block, ...keys))

const place = folder()
let env: Record<string, string>

beforeAll(async () => {
  await Effect.runPromise(writeShop(join(place, "shop.db")))
  copyFileSync(fileURLToPath(new URL("../dist/budget.xlsx", import.meta.url)), join(place, "budget.xlsx"))
  // A port that nothing listens on: the server must start and serve the other sources all the same.
  const port = await new Promise<number>((resolve) => {
    const listener = createServer().listen(0, "127.0.0.1", () => {
      const address = listener.address()
      listener.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0))
    })
  })
  env = { CRM_URL: `postgres://reader@127.0.0.1:${port}/crm`, ERP_PASSWORD: "not-a-secret" }
})

/** The cells of a table's line. */
const cellsOf = (line: string) => line.split("|").map((cell) => cell.trim())

/** The arguments of our command in `words`, whichever way it is called. */
const argumentsIn = (words: ReadonlyArray<string>): ReadonlyArray<string> =>
  words.slice(words.findIndex((word) => word === "dist/main.js" || word === "mcp-query") + 1)

/** Starts the server as an example says, and asks what it can answer without a network. */
const serves = async (args: ReadonlyArray<string>, sourceIds: ReadonlyArray<string>, dir = place) => {
  const server = await connect(args, { cwd: dir, env })
  const { tools } = await server.client.listTools()
  expect(tools.map(({ name }) => name)).toEqual(["query", "schema", "explain"])
  for (const source of sourceIds) {
    const answer = await server.query({ sql: "select 1 as one", ...(sourceIds.length > 0 ? { source } : {}) })
    expect(answer).toMatchObject(
      source === "crm"
        ? { ok: false, error: { category: "connection_failed", reason: "refused" } }
        : { ok: true, value: { rows: [{ one: 1 }] } }
    )
  }
  await server.close()
}

describe("README", () => {
  it("has no example that this file does not run", () => {
    // Those in TypeScript are compiled and run against the packed package, in Package.integration.test.ts.
    expect(new Set(blocks.map(({ language }) => language))).toEqual(new Set(["sh", "json", "sql", "ts"]))
    for (const block of jsonBlocks)
      expect(
        ["mcpServers", "servers", "sources", "columns", "event"].filter((key) => key in block)
      ).toHaveLength(1)
    for (const line of shellLines)
      expect(line).toMatch(/^(npm ci && npm (run demo|test)$|node dist\/main\.js |claude mcp add )/)
  })

  it("starts with two commands, and both are there", () => {
    expect(shellLines.slice(0, 2)).toEqual(["npm ci && npm run demo", "npm ci && npm test"])
    expect(packageJson.scripts.demo).toBe("node dist/main.js demo")
    expect(packageJson.scripts.test).toMatch(/^vitest run/)
  })

  it("the demo shows the tools, answers, a refused write, a hint, a cancelled runaway and the log", async () => {
    const { stdout } = await run(process.execPath, [mainFile, "demo"])
    for (const shown of [
      "Run a read-only SQL query",
      "revenue",
      "2025-12",
      "Marketing",
      "query_rejected / read_only",
      "query_failed / unknown_column",
      "ping answered after",
      "cancelled: the statement's process was ended",
      '"outcome":"cancelled"'
    ])
      expect(stdout).toContain(shown)
    // one line for each of the eight calls
    expect(stdout.match(/"event":"tool_call"/g)).toHaveLength(8)
  })

  it("serves as its command lines say", async () => {
    const commands = shellLines
      .filter((line) => line.startsWith("node dist/main.js"))
      .map((line) => line.split(" "))
    expect(commands).toHaveLength(5)
    const [config] = find("sources")
    writeFileSync(join(place, "mcp-query.json"), JSON.stringify(config))
    for (const words of commands) {
      const args = argumentsIn(words)
      if (args[0] === "audit") {
        const [line] = find("event")
        writeFileSync(
          join(place, "calls.log"),
          `${JSON.stringify({ ...line, time: new Date().toISOString() })}\n`
        )
        const { stdout } = await run(process.execPath, [mainFile, ...args], { cwd: place })
        expect(stdout).toContain("shop")
        expect(readFileSync(join(place, "report.html"), "utf8")).toContain("<svg")
      } else if (args[0] === "check") {
        const failed = await run(process.execPath, [mainFile, ...args], { cwd: place, env }).catch(
          (error) => error
        )
        expect(failed).toMatchObject({ code: 1, stdout: expect.stringContaining("no: refused") })
      } else if (args[0] === "--config") await serves(args, ["shop", "crm", "budget"])
      else await serves(args, args.length === 1 ? ["shop"] : ["crm", "budget"])
    }
  })

  it("its client set-ups start the server", async () => {
    const [desktop] = find("mcpServers")
    const [vscode] = find("servers")
    for (const { args, command, env: given } of [desktop.mcpServers.data, vscode.servers.data]) {
      expect(command).toBe("npx")
      // The example's own value is one that a reader replaces.
      expect(Object.keys(given)).toEqual(["CRM_URL"])
      const ours = argumentsIn(args)
      await serves(ours, ours.length > 1 ? ["shop", "crm"] : ["crm"])
    }
    const [claude = ""] = shellLines.filter((line) => line.startsWith("claude mcp add"))
    const [options = "", launch = ""] = claude.split(" -- ")
    expect(options).toMatch(/^claude mcp add data --env CRM_URL=/)
    await serves(argumentsIn(launch.split(" ")), ["shop", "crm"])
  })

  it("its questions to a workbook have the answers shown", async () => {
    const examples = [
      ...readme.matchAll(/^(.*)\n\n```sql\n([\s\S]*?)^```\n\n\|(.*)\|\n\|.*\|\n((?:\|.*\|\n)+)/gm)
    ].map(([, sentence = "", sql = "", head = "", body = ""]) => ({
      sql,
      params: JSON.parse(/`params: (\[.*?\])`/.exec(sentence)?.[1] ?? "[]"),
      columns: cellsOf(head),
      rows: body
        .trim()
        .split("\n")
        .map((line) => cellsOf(line.slice(1, -1)))
    }))
    expect(examples).toHaveLength(blocks.filter(({ language }) => language === "sql").length)
    const server = await connect(["budget.xlsx"], { cwd: place })
    for (const { columns, params, rows, sql } of examples) {
      const answer = await server.query({ sql, params, format: "columnar" })
      expect(answer, sql).toMatchObject({ ok: true, value: { columns } })
      if (answer.ok)
        expect(
          answer.value.rows.map((row) => (Array.isArray(row) ? row.map(String) : row)),
          sql
        ).toEqual(rows)
    }
    await server.close()
  })

  it("its answer and its log line decode", () => {
    const [answer] = find("columns")
    const [line] = find("event")
    expect(Schema.decodeUnknownSync(QueryResult)(answer)).toEqual(answer)
    expect(Schema.decodeUnknownSync(LogEntry)(line)).toEqual(line)
  })
})
