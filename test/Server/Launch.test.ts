/** Every way to start the server, and what it then serves. */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import packageJson from "../../package.json" with { type: "json" }
import { errorOf, valueOf } from "../support/Answer.js"
import { fill, folder } from "../support/Folder.js"
import { eventually } from "../support/Process.js"
import { Program, type ProgramOptions, runProgram } from "../support/Program.js"

const place = folder()
const shop = fill(join(place, "shop.db"), "create table t (a)", "insert into t values ('shop'), ('more')")
mkdirSync(join(place, "deep"))
const other = fill(
  join(place, "deep", "other.sqlite3"),
  "create table t (a)",
  "insert into t values ('other')"
)

const config = (name: string, content: object): string => {
  const file = join(place, "deep", name)
  writeFileSync(file, JSON.stringify(content))
  return file
}

/** Starts the server and gives the ids that it serves, and what the table of each holds first. */
const serve = async (args: ReadonlyArray<string>, options: ProgramOptions = {}) => {
  const program = await new Program(args, options).initialize()
  const { result } = await program.request("tools/list")
  const [query] = (result?.["tools"] ?? []) as ReadonlyArray<{
    inputSchema: { properties: { source: { enum: ReadonlyArray<string> } }; required: ReadonlyArray<string> }
  }>
  const ids = query?.inputSchema.properties.source.enum ?? []
  expect(query?.inputSchema.required).toEqual(ids.length > 1 ? ["sql", "source"] : ["sql"])
  const served: Record<string, unknown> = {}
  for (const id of ids) {
    const { rows } = valueOf(
      await program.query({ sql: "select a from t limit 1", source: id, format: "columnar" })
    )
    served[id] = rows[0]
  }
  return { program, served }
}

describe("sources", () => {
  const forms: ReadonlyArray<
    readonly [string, ReadonlyArray<string>, ProgramOptions, Record<string, unknown>]
  > = [
    ["a file", [shop], {}, { shop: ["shop"] }],
    ["a file with an id", [`crm_2=${shop}`], {}, { crm_2: ["shop"] }],
    ["a file relative to the current folder", ["./shop.db"], { cwd: place }, { shop: ["shop"] }],
    ["several files", [shop, other], {}, { shop: ["shop"], other: ["other"] }],
    ["the same file under two ids", [`a=${shop}`, `b=${shop}`], {}, { a: ["shop"], b: ["shop"] }],
    ["a URL with a path", [`sqlite:${shop}`], {}, { shop: ["shop"] }],
    ["a URL with slashes", [`x=sqlite://${shop}`], {}, { x: ["shop"] }],
    ["a URL with a relative path", ["sqlite:deep/other.sqlite3"], { cwd: place }, { other: ["other"] }],
    ["env:NAME with a file", ["env:HERE"], { env: { HERE: shop } }, { shop: ["shop"] }],
    ["env:NAME with an id", ["x=env:HERE"], { env: { HERE: `sqlite:${shop}` } }, { x: ["shop"] }],
    ["DATABASE_URL", [], { env: { DATABASE_URL: `sqlite:${other}` } }, { other: ["other"] }],
    ["arguments before DATABASE_URL", [shop], { env: { DATABASE_URL: other } }, { shop: ["shop"] }],
    [
      "--config FILE, its files relative to its own folder",
      ["--config", config("relative.json", { sources: { a: { engine: "sqlite", file: "other.sqlite3" } } })],
      { cwd: place },
      { a: ["other"] }
    ],
    [
      "MCP_QUERY_CONFIG before DATABASE_URL",
      [],
      {
        env: {
          MCP_QUERY_CONFIG: config("named.json", {
            sources: { b: { engine: "sqlite", file: "../shop.db" } }
          }),
          DATABASE_URL: other
        }
      },
      { b: ["shop"] }
    ],
    [
      "names of the environment in a config file",
      [
        "--config",
        config("environment.json", {
          // biome-ignore lint/suspicious/noTemplateCurlyInString: the config file's own syntax
          sources: { a: { engine: "sqlite", file: "${WHERE}/${WHAT}.db", description: "all of ${WHAT}" } }
        })
      ],
      { env: { WHERE: place, WHAT: "shop" } },
      { a: ["shop"] }
    ]
  ]

  it.concurrent.each(forms)("%s", async (_, args, options, expected) => {
    const { program, served } = await serve(args, options)
    expect(served).toEqual(expected)
    program.closeStdin()
    expect(await program.ended).toEqual({ code: 0, signal: null })
  })
})

describe("settings", () => {
  const file = config("limits.json", {
    sources: {
      narrow: { engine: "sqlite", file: shop, limits: { maxRows: 1 } },
      hasty: { engine: "sqlite", file: shop, limits: { timeoutMs: 400 } },
      plain: { engine: "sqlite", file: shop, description: "orders since 2019" }
    },
    limits: { maxRows: 2, maxBytes: 1000, maxCellBytes: 20, timeoutMs: 20_000 },
    log: { level: "warn" },
    structuredContent: false
  })
  const numbers = "with recursive c(i) as (values (1) union all select i + 1 from c) select i from c"

  it("limits stand at the top and in a source, and structured content can be off", async () => {
    const program = await new Program(["--config", file]).initialize()
    const { result = {} } = await program.request("tools/list")
    for (const tool of result["tools"] as ReadonlyArray<object>)
      expect(tool).not.toHaveProperty("outputSchema")
    expect(JSON.stringify(result)).toContain("orders since 2019")

    const ask = async (args: object) => {
      const { result = {} } = await program.answer(program.beginQuery(args))
      expect(result).not.toHaveProperty("structuredContent")
      const [{ text }] = result["content"] as readonly [{ text: string }]
      return JSON.parse(text)
    }
    expect(await ask({ sql: numbers, source: "narrow" })).toMatchObject({ rowCount: 1, truncated: true })
    expect(await ask({ sql: numbers, source: "plain" })).toMatchObject({ rowCount: 2, truncated: true })
    expect(await ask({ sql: "select hex(zeroblob(50)) as a", source: "narrow" })).toMatchObject({
      rows: [{ a: "0".repeat(20) }],
      truncatedCells: [{ row: 0, column: "a", bytes: 100 }]
    })
    expect(await ask({ sql: `${numbers} where i < 0`, source: "hasty" })).toMatchObject({
      error: { category: "query_failed", reason: "timeout", source: "hasty" }
    })
    expect(await ask({ sql: numbers, source: "narrow", maxRows: 2 })).toMatchObject({
      error: { category: "invalid_input", reason: "out_of_range", issues: [{ path: "maxRows" }] }
    })
    program.closeStdin()
    expect((await program.ended).code).toBe(0)
    // Lines of calls are of level info.
    expect(program.stderr).toBe("")
  })

  it("a source that is not there is not fatal, and no source is opened before its first call", async () => {
    const late = join(place, "late.db")
    const program = await new Program([shop, `late=${late}`]).initialize()
    const missing = errorOf(await program.query({ sql: "select 1", source: "late" }))
    expect(missing).toMatchObject({ category: "connection_failed", reason: "file_not_found", source: "late" })
    valueOf(await program.query({ sql: "select 1", source: "shop" }))
    fill(late, "create table t (a)", "insert into t values (1)")
    const { rows } = valueOf(await program.query({ sql: "select a from t", source: "late" }))
    expect(rows).toEqual([{ a: 1 }])
    const events = () =>
      program.log.map(({ event, source }) => [event, source]).filter(([, source]) => source)
    await eventually("the recovery is logged", () => events().some(([event]) => event === "source_recovered"))
    expect(events().filter(([event]) => event !== "tool_call")).toEqual([
      ["source_lost", "late"],
      ["source_connected", "shop"],
      ["source_recovered", "late"]
    ])
  })
})

describe("information", () => {
  it("--help", async () => {
    const { code, stderr, stdout } = await runProgram(["--help"])
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" })
    for (const word of ["SOURCE", "--config", "MCP_QUERY_CONFIG", "DATABASE_URL", "env:NAME", "demo", "78"])
      expect(stdout).toContain(word)
  })

  it.each([
    ["--help", "stdout", 0],
    ["--version", "stdout", 0],
    ["check", "stdout", 0],
    ["demo", "stdout", 0],
    ["--verbose", "stderr", 78]
  ] as const)("%s ends as it should where nobody reads its %s", async (argument, stream, code) => {
    const program = new Program(argument === "check" ? ["check", shop] : [argument])
    program.process[stream]?.destroy()
    expect((await program.ended).code).toBe(code)
    if (stream === "stdout") expect(program.stderr).toBe("")
  })

  it("--version", async () => {
    expect(await runProgram(["--version"])).toEqual({
      code: 0,
      signal: null,
      stderr: "",
      stdout: `${packageJson.version}\n`
    })
  })
})
