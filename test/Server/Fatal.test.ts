/** What keeps the server from starting: one message with every problem, exit code 78, nothing on stdout. */
import { randomBytes } from "node:crypto"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { fill, folder } from "../support/Folder.js"
import { runProgram } from "../support/Program.js"

const place = folder()
const shop = fill(join(place, "shop.db"), "create table t (a)")
const secret = randomBytes(12).toString("hex")

const config = (name: string, content: unknown): ReadonlyArray<string> => {
  const file = join(place, `${name}.json`)
  writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content))
  return ["--config", file]
}

interface Case {
  readonly what: string
  readonly args: ReadonlyArray<string>
  readonly env?: Record<string, string>
  /** What the message must say. */
  readonly says: ReadonlyArray<string | RegExp>
}

const cases: ReadonlyArray<Case> = [
  { what: "nothing to serve", args: [], says: ["--config", "DATABASE_URL", "MCP_QUERY_CONFIG"] },
  { what: "an unknown flag", args: ["--verbose", shop], says: ["--verbose"] },
  { what: "an option of another command", args: ["--json", shop], says: ["--json", "serve"] },
  {
    what: "an option of no meaning for the demo",
    args: ["demo", "--config", "x"],
    says: ["--config", "demo"]
  },
  { what: "an argument behind demo", args: ["demo", `x=postgres://u:${secret}@h`], says: ["demo"] },
  { what: "an option twice", args: ["--config", "a", "--config", "b"], says: ["--config", "twice"] },
  { what: "--config without a file", args: ["--config"], says: ["--config"] },
  { what: "sources and a config file", args: [shop, ...config("both", {})], says: ["--config", "both"] },
  { what: "two equal ids", args: [`a=${shop}`, `a=${shop}`], says: ["a", /second/] },
  { what: "two equal ids made of file names", args: [shop, "other/shop.sqlite"], says: ["shop", /second/] },
  { what: "an id that is none", args: [`My-Shop=${shop}`], says: ["My-Shop", "a-z"] },
  { what: "no location", args: ["a="], says: [/SOURCE 1|\ba\b/, /nothing/] },
  { what: "a location of no engine", args: ["notes.docx"], says: ["notes.docx", ".sqlite"] },
  { what: "a URL of no engine", args: ["x=oracle://h/db"], says: ["oracle", "postgres://"] },
  {
    what: "an engine that is not built, with a password",
    args: ["env:LEGACY"],
    env: { LEGACY: `mysql://root:${secret}@db/x` },
    says: ["LEGACY", /mysql/i]
  },
  {
    what: "a wrong location with a password",
    args: ["env:ODD"],
    env: { ODD: `oracle://root:${secret}@db/x?password=${secret}` },
    says: ["ODD"]
  },
  { what: "a variable that is not set", args: ["x=env:NOWHERE"], says: ["NOWHERE", "not set"] },
  { what: "an empty variable", args: ["x=env:EMPTY"], env: { EMPTY: "" }, says: ["EMPTY"] },
  {
    what: "a wrong DATABASE_URL",
    args: [],
    env: { DATABASE_URL: `gopher://u:${secret}@h` },
    says: ["DATABASE_URL"]
  },
  {
    what: "a config file that is missing",
    args: ["--config", join(place, "none.json")],
    says: ["--config", "none.json"]
  },
  {
    what: "a named config file that is missing",
    args: [],
    env: { MCP_QUERY_CONFIG: join(place, "none.json") },
    says: ["MCP_QUERY_CONFIG", "none.json"]
  },
  { what: "a config file that is a folder", args: ["--config", place], says: ["--config"] },
  {
    what: "a config file that is no JSON",
    args: config("broken", `{"sources": {"a": {"engine": "sqlite", "password": "${secret}",, }}}`),
    says: ["broken.json", "JSON"]
  },
  { what: "a config file that is empty", args: config("nothing", ""), says: ["nothing.json", "JSON"] },
  { what: "a config file that is no object", args: config("list", []), says: ["an object", "an array"] },
  { what: "no sources", args: config("no-sources", { sources: {} }), says: ["sources", "at least one"] },
  { what: "sources left out", args: config("without", { limits: {} }), says: ["sources"] },
  {
    what: "an unknown key",
    args: config("unknown", { sources: { a: { engine: "sqlite", file: "x.db", fiel: 1 } }, limit: {} }),
    says: ["sources.a.fiel", /^ *limit:/m, "limits"]
  },
  {
    what: "an unknown engine",
    args: config("engine", { sources: { a: { engine: "oracle", file: "x.db" } } }),
    says: ["sources.a", "sqlite"]
  },
  {
    what: "every problem at once",
    args: config("many", {
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the config file's own syntax
      sources: { a: { engine: "sqlite", file: "${MISSING_ONE}" }, "B-2": { engine: "sqlite", file: "x.db" } },
      limits: { maxRows: 0, timeoutMs: "long", maxBytes: 1.5 },
      log: { level: "loud", arguments: "some" },
      structuredContent: "yes"
    }),
    says: [
      "sources.a.file",
      "MISSING_ONE",
      "sources.B-2",
      "limits.maxRows",
      "limits.timeoutMs",
      "limits.maxBytes",
      "log.level",
      "log.arguments",
      "structuredContent",
      "debug, info, warn or error",
      /0\b/
    ]
  },
  {
    what: "several arguments at once",
    args: ["x=env:NOWHERE", "notes.docx", `a=${shop}`, `a=${shop}`],
    says: ["NOWHERE", "notes.docx", /second/]
  },
  {
    what: "wrong values under keys of secrets",
    args: config("secret", {
      sources: { a: { engine: "sqlite", file: "x.db", password: secret, url: `postgres://u:${secret}@h` } }
    }),
    says: ["sources.a.password", "sources.a.url"]
  },
  {
    what: "a log file that cannot be written",
    args: config("log", {
      sources: { a: { engine: "sqlite", file: "shop.db" } },
      log: { file: "no/such/folder/log.jsonl" }
    }),
    says: ["log.file"]
  }
]

describe("a fatal error", () => {
  it.concurrent.each(cases.map((entry) => [entry.what, entry] as const))("%s", async (_, entry) => {
    const { code, signal, stderr, stdout } = await runProgram(entry.args, entry.env ? { env: entry.env } : {})
    expect({ code, signal, stdout }).toEqual({ code: 78, signal: null, stdout: "" })
    for (const text of entry.says) expect(stderr).toMatch(text)
    expect(stderr).not.toContain(secret)
    // A message for a person, no stack.
    expect(stderr).not.toMatch(/^\s+at /m)
    expect(stderr.match(/mcp-query cannot start/g)).toHaveLength(1)
  })
})
