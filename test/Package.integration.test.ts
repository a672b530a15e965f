/** The package as its users get it: packed, installed into a folder of its own, its examples compiled and run there. */
import { type ChildProcess, execFile, spawn } from "node:child_process"
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { createServer } from "node:http"
import { basename, join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import * as Effect from "effect/Effect"
import packageJson from "../package.json" with { type: "json" }
import { write as writeShop } from "../src/Demo/ShopDatabase.js"
import { answerOf, errorOf, valueOf } from "./support/Answer.js"
import { folder } from "./support/Folder.js"
import { eventually } from "./support/Process.js"

const run = promisify(execFile)
const repository = fileURLToPath(new URL("..", import.meta.url))
const place = realpathSync(folder())
const source = join(place, "source")
const app = join(place, "app")
let tarball = ""

const versionOf = (name: keyof typeof packageJson.devDependencies) =>
  `${name}@${packageJson.devDependencies[name]}`

const examples = ["http-service", "own-adapter", "own-engine", "error-handler", "tracing"]

/** The README's examples in TypeScript, in their order. */
const readme = [
  ...readFileSync(join(repository, "README.md"), "utf8").matchAll(/^```ts\n([\s\S]*?)^```$/gm)
].map(([, text = ""]) => text)

/** Built in a copy, because other tests use `dist` meanwhile. */
const pack = async () => {
  mkdirSync(source)
  for (const name of [
    "src",
    "scripts",
    "package.json",
    "tsconfig.json",
    "tsconfig.build.json",
    ...packageJson.files.filter((name) => name !== "dist")
  ])
    cpSync(join(repository, name), join(source, name), { recursive: true })
  symlinkSync(realpathSync(join(repository, "node_modules")), join(source, "node_modules"))
  await run(process.execPath, ["scripts/build.mjs"], { cwd: source })
  const { stdout } = await run("npm", ["pack", "--json", "--ignore-scripts"], { cwd: source })
  const [packed] = JSON.parse(stdout) as ReadonlyArray<{ readonly filename: string }>
  return join(source, packed?.filename ?? "")
}

const install = async () => {
  mkdirSync(app)
  writeFileSync(join(app, "package.json"), JSON.stringify({ name: "app", private: true, type: "module" }))
  await run(
    "npm",
    [
      ...["install", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund", tarball],
      ...[versionOf("effect"), versionOf("@effect/platform-node"), versionOf("@effect/opentelemetry")],
      ...[versionOf("@duckdb/node-api"), versionOf("typescript"), versionOf("@types/node")]
    ],
    { cwd: app }
  )
  // What the driver's install script would make once more, in a minute.
  const built = join("node_modules", "better-sqlite3", "build")
  cpSync(join(repository, built), join(app, built), { recursive: true })
}

const tsconfig = {
  compilerOptions: {
    target: "ES2022",
    lib: ["ES2023"],
    module: "NodeNext",
    moduleDetection: "force",
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    // The package's own declarations are under test as well.
    skipLibCheck: false,
    types: ["node"],
    rootDir: "examples",
    outDir: "out"
  },
  include: ["examples"]
}

const compile = () => {
  for (const name of examples)
    cpSync(join(repository, "examples", name), join(app, "examples", name), { recursive: true })
  mkdirSync(join(app, "examples", "readme"))
  readme.forEach((text, index) => {
    writeFileSync(join(app, "examples", "readme", `${index}.ts`), text)
  })
  writeFileSync(join(app, "tsconfig.json"), JSON.stringify(tsconfig))
  return run(process.execPath, ["node_modules/typescript/bin/tsc"], { cwd: app }).catch((error) => error)
}

let compiled: { readonly stdout: string }

beforeAll(async () => {
  tarball = await pack()
  await install()
  compiled = await compile()
  await Effect.runPromise(writeShop(join(app, "shop.db")))
  cpSync(join(app, "node_modules", "mcp-query", "dist", "budget.xlsx"), join(app, "budget.xlsx"))
}, 600_000)

/** Made by the engine itself, in a process of its own, because a database has one writer. */
const writeVisits = (file: string) =>
  run(
    process.execPath,
    [
      "--input-type=module",
      "--eval",
      `import { DuckDBInstance } from "@duckdb/node-api"
      const instance = await DuckDBInstance.create(process.argv[1])
      const connection = await instance.connect()
      await connection.run(\`
        create table visits (id bigint primary key, page varchar not null, took decimal(8, 3));
        insert into visits select i, 'page' || i, i / 8 from range(5) t(i);
        comment on table visits is 'one a page view';
        create schema "my stats";
        create view "my stats"."by page" as select page, count(*) as n from visits group by page\`)
      connection.closeSync()
      instance.closeSync()`,
      file
    ],
    { cwd: app }
  )

const started: Array<ChildProcess> = []
const clients: Array<Client> = []
const strays: Array<Error> = []
afterAll(async () => {
  expect(strays).toEqual([])
  await Promise.all(clients.map((client) => client.close()))
  for (const child of started) child.kill("SIGKILL")
})

const runExample = (program: string, ...args: ReadonlyArray<string>) =>
  run(process.execPath, [join("out", program), ...args], { cwd: app })

/** Starts an example that serves, under the SDK's own client. */
const connect = async (
  program: string,
  args: ReadonlyArray<string> = [],
  env: Record<string, string> = {}
) => {
  const client = new Client({ name: "test", version: "0" })
  clients.push(client)
  // A line on standard output that is no message, say one of the application's own log.
  client.onerror = (error) => strays.push(error)
  await client.connect(
    new StdioClientTransport({
      command: process.execPath,
      args: [join("out", program), ...args],
      cwd: app,
      env,
      stderr: "ignore"
    })
  )
  await client.listTools()
  const call = async (name: string, args: Record<string, unknown>, meta: Record<string, unknown> = {}) =>
    answerOf(await client.callTool({ name, arguments: args, _meta: meta }))
  return { client, call }
}

describe("the package", () => {
  it("is in order for publint and for TypeScript's ways of resolving it", async () => {
    const tool = (name: string) => join(repository, "node_modules", ".bin", name)
    await run(tool("publint"), ["run", tarball, "--strict"])
    await run(tool("attw"), [tarball, "--profile", "esm-only"])
  })

  it("has what it needs and nothing of its workshop", () => {
    const root = join(app, "node_modules", "mcp-query")
    expect(readdirSync(root).sort()).toEqual([...packageJson.files, "package.json"].sort())
    expect(readdirSync(join(root, "dist")).sort()).toEqual([
      "ExcelChild.js",
      "SqliteChild.js",
      "budget.xlsx",
      "chunks",
      "lib",
      "main.js"
    ])
    const modules = readdirSync(join(root, "dist", "lib"), { recursive: true, encoding: "utf8" })
    expect(modules.filter((name) => /(^|[\\/])(main|Cli|Demo|Audit|Child)(\.js|[\\/])/.test(name))).toEqual(
      []
    )
  })

  it("shares one copy of effect with its application", async () => {
    const { stdout } = await run("npm", ["ls", "effect", "--json", "--all"], { cwd: app })
    const versions = new Set([...stdout.matchAll(/"effect": \{\s+"version": "([^"]+)"/g)].map(([, v]) => v))
    expect(versions).toEqual(new Set([packageJson.devDependencies.effect]))
    expect(existsSync(join(app, "node_modules", "mcp-query", "node_modules", "effect"))).toBe(false)
  })

  it("has every file that the README leads to", () => {
    const root = join(app, "node_modules", "mcp-query")
    const links = [...readFileSync(join(root, "README.md"), "utf8").matchAll(/\]\((?!https?:|#)([^)#]+)/g)]
    expect(links.length).toBeGreaterThan(0)
    expect(links.map(([, link = ""]) => link).filter((link) => !existsSync(join(root, link)))).toEqual([])
  })

  it("brings no writer of workbooks along", () =>
    expect(existsSync(join(app, "node_modules", "exceljs"))).toBe(false))

  it("npx mcp-query demo works", async () => {
    const { stdout } = await run("npx", ["--no-install", "mcp-query", "demo"], { cwd: app })
    expect(stdout).toContain("query_rejected / read_only")
    expect(stdout).toContain("cancelled: the statement's process was ended")
  })
})

/** Imports an entry and tells what that started, which packages it loaded, and what is still open. */
const probe = `
import { createRequire, register, syncBuiltinESMExports } from "node:module"
import { MessageChannel, receiveMessageOnPort } from "node:worker_threads"
const require = createRequire(import.meta.url)
const { port1, port2 } = new MessageChannel()
register("data:text/javascript," + encodeURIComponent(\`
  let port
  export const initialize = (data) => { port = data.port }
  export const load = (url, context, next) => { port.postMessage(url); return next(url, context) }
\`), import.meta.url, { data: { port: port2 }, transferList: [port2] })
await import("node:os")

const started = []
// Node itself may read modules with what is watched here.
const isModule = (file) => /\\.(c?js|mjs|json)$/.test(String(file))
const watch = (object, ...names) => {
  for (const name of names) {
    const original = object[name]
    object[name] = function (...args) {
      if (!(name === "openSync" && isModule(args[0]))) started.push(name)
      return new.target ? Reflect.construct(original, args, new.target) : Reflect.apply(original, this, args)
    }
  }
}
watch(require("child_process").ChildProcess.prototype, "spawn")
watch(require("net").Socket.prototype, "connect")
watch(require("net").Server.prototype, "listen")
watch(require("worker_threads"), "Worker")
watch(require("fs"), "open", "openSync", "writeFileSync", "mkdirSync", "watch")
watch(globalThis, "setInterval")
syncBuiltinESMExports()
const listeners = () => process.eventNames().map((name) => String(name) + process.listenerCount(name)).sort().join()
const { write } = process.stdout
const before = { listeners: listeners(), resources: process.getActiveResourcesInfo().join() }

const names = Object.keys(await import(process.argv[2])).sort()

const loaded = []
for (let next = receiveMessageOnPort(port1); next !== undefined; next = receiveMessageOnPort(port1)) loaded.push(next.message)
const packages = new Set(loaded.flatMap((url) => /.*node_modules\\/((@[^/]+\\/)?[^/]+)/.exec(url)?.[1] ?? []))
const after = { listeners: listeners(), resources: process.getActiveResourcesInfo().join() }
if (write !== process.stdout.write) started.push("write")
for (const key of ["listeners", "resources"]) if (before[key] !== after[key]) started.push(key + ": " + before[key] + " → " + after[key])
console.log(JSON.stringify({ names, started, packages: [...packages].sort() }))
port1.close()
`

describe("an import", () => {
  const imported = async (entry: string) => {
    writeFileSync(join(app, "probe.mjs"), probe)
    // It ends by itself, or nothing is left to keep it.
    const { stdout } = await run(process.execPath, ["probe.mjs", entry], { cwd: app })
    return JSON.parse(stdout) as Record<"names" | "started" | "packages", ReadonlyArray<string>>
  }

  /** Effect with what its Schema draws in. */
  const effect = ["effect", "fast-check", "pure-rand"]

  it("of the port starts nothing, and loads Effect and nothing else", async () => {
    const { names, packages, started } = await imported("mcp-query")
    expect(started).toEqual([])
    expect(names).toEqual(expect.arrayContaining(["Adapter", "Policy", "QueryError", "QueryResult", "Tools"]))
    expect(packages).toEqual([...effect, "fastest-levenshtein", "mcp-query"].sort())
  })

  it("of the adapters starts nothing, and loads no driver", async () => {
    const { names, packages, started } = await imported("mcp-query/adapters")
    expect(started).toEqual([])
    expect(names).toEqual(["Excel", "Postgres", "ReadClient", "SqlServer", "Sqlite", "Telemetry"])
    expect(packages).toEqual([...effect, "mcp-query"].sort())
  })

  it("of the server starts nothing, and loads no driver", async () => {
    const { names, packages, started } = await imported("mcp-query/server")
    expect(started).toEqual([])
    expect(names).toEqual(["McpServer", "layer", "serve"])
    for (const driver of ["pg", "tedious", "better-sqlite3", "libpg-query", "yauzl", "@effect/sql"])
      expect(packages).not.toContain(driver)
  })
})

describe("examples", () => {
  it("are all compiled, those of the README as well", () => {
    expect(compiled.stdout).toBe("")
    const folders = readdirSync(join(repository, "examples"), { withFileTypes: true })
    expect(folders.flatMap((entry) => (entry.isDirectory() ? [entry.name] : [])).sort()).toEqual(
      [...examples].sort()
    )
  })

  it("README: an adapter, the tools, the server", async () => {
    expect(readme).toHaveLength(3)
    expect((await runExample("readme/0.js")).stdout).toContain("[ [ '")
    expect((await runExample("readme/1.js")).stdout).toMatch(/\[ \{ products: \d+ \} \]/)
    const { call } = await connect("readme/2.js")
    expect(valueOf(await call("query", { sql: "select count(*) as n from [Budget 2025]" })).rowCount).toBe(1)
  })

  it("error-handler: each failure has its words", async () => {
    const { stdout } = await runExample("error-handler/main.js", "shop.db")
    for (const line of [
      '[{"answer":42}]',
      "InvalidInput: correct sql",
      "QueryRejected: the statement may not be run (read_only)",
      "QueryFailed: no such table: nowhere",
      "ConnectionFailed: the source cannot be reached (file_not_found)"
    ])
      expect(stdout).toContain(line)
  })

  /** The address that the HTTP service says it listens on. */
  const startService = async () => {
    const child = spawn(process.execPath, [join("out", "http-service", "main.js"), "shop.db"], {
      cwd: app,
      env: { ...process.env, PORT: "0" },
      stdio: ["ignore", "pipe", "inherit"]
    })
    started.push(child)
    let said = ""
    child.stdout.on("data", (chunk: Buffer) => {
      said += chunk.toString("utf8")
    })
    const [address] = await eventually("the service listens", () => /http:\/\/127\.0\.0\.1:\d+/.exec(said))
    return `${address}/query`
  }

  it("http-service and own-adapter: one adapter behind HTTP, and an adapter for that service beside ours", async () => {
    const url = await startService()
    const post = async (body: object) => {
      const response = await fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body)
      })
      return { status: response.status, body: await response.json() }
    }
    const sql = "select id, name from products order by id limit 2"
    expect(await post({ sql })).toMatchObject({ status: 200, body: { rowCount: 2, columns: ["id", "name"] } })
    expect(await post({ sql: "drop table products" })).toMatchObject({
      status: 403,
      body: { _tag: "QueryRejected", reason: "read_only" }
    })
    expect(await post({ sql: "select nme from products" })).toMatchObject({
      status: 422,
      body: { _tag: "QueryFailed", reason: "unknown_column" }
    })
    expect(await post({ sql: 5 })).toMatchObject({ status: 400 })

    const { call } = await connect("own-adapter/main.js", ["shop.db", url])
    const here = valueOf(await call("query", { source: "here", sql }))
    const there = valueOf(await call("query", { source: "there", sql }))
    expect({ ...there, durationMs: 0 }).toEqual({ ...here, durationMs: 0 })
    const nme = errorOf(await call("query", { source: "there", sql: "select nme from products" }))
    expect(nme).toMatchObject({ category: "query_failed", reason: "unknown_column", source: "there" })
    const drop = errorOf(await call("query", { source: "there", sql: "drop table products" }))
    expect(drop).toMatchObject({ category: "query_rejected", reason: "read_only" })
    const few = valueOf(
      await call("query", { source: "there", sql: "select * from order_lines", maxRows: 3 })
    )
    expect(few).toMatchObject({ rowCount: 3, truncated: true, truncatedBy: "max_rows" })
    expect(await call("schema", { source: "there", name: "products" })).toMatchObject({
      ok: true,
      value: { objects: [{ name: "products", primaryKey: ["id"] }] }
    })
    expect(await call("explain", { source: "there", sql })).toMatchObject({
      ok: true,
      value: { plan: [expect.stringContaining("products")] }
    })
  })

  it("own-engine: an engine with a Dialect of its own beside SQLite", async () => {
    await writeVisits(join(app, "visits.duckdb"))
    const { call, client } = await connect("own-engine/main.js", ["shop.db", "visits.duckdb"])
    const { tools } = await client.listTools()
    expect(tools[0]?.description).toContain(
      "Dialect and placeholders for params: SQLite (?), DuckDB SQL ($1)."
    )
    expect(tools[0]?.description).toContain("Sources: shop (sqlite), visits (duckdb).")
    expect(valueOf(await call("schema", {}))).toMatchObject({
      sources: [
        { id: "shop", engine: "sqlite" },
        { id: "visits", engine: "duckdb" }
      ]
    })
    const on = (sql: string, more: object = {}) => call("query", { source: "visits", sql, ...more })

    // What only DuckDB writes so.
    expect(
      valueOf(await on("from visits where id >= $1 order by id", { params: [2], maxRows: 1 }))
    ).toMatchObject({
      columnTypes: ["BIGINT", "VARCHAR", "DECIMAL(8,3)"],
      rows: [{ id: 2, page: "page2", took: "0.250" }],
      truncatedBy: "max_rows"
    })
    expect(errorOf(await call("query", { source: "shop", sql: "from products" }))).toMatchObject({
      category: "query_failed",
      reason: "syntax"
    })
    for (const [sql, reason] of [
      ["drop table visits", "read_only"],
      ["insert into visits values (9, 'x', 1)", "read_only"],
      ["with v as (select 1) insert into visits select 1, 'x', 1", "read_only"],
      ["copy visits to 'visits.csv'", "read_only"],
      ["attach 'other.duckdb'", "read_only"],
      ["set threads = 1", "read_only"],
      ["select 1; select 2", "multiple_statements"],
      ["-- nothing", "multiple_statements"]
    ])
      expect(errorOf(await on(sql ?? ""))).toMatchObject({ category: "query_rejected", reason })
    expect(valueOf(await on("select ';' as mark -- one; statement"))).toMatchObject({ rows: [{ mark: ";" }] })
    expect(errorOf(await on("select * from read_csv('package.json')"))).toMatchObject({
      category: "query_failed",
      reason: "permission_denied"
    })
    expect(errorOf(await on("selec 1"))).toMatchObject({ category: "query_failed", reason: "syntax" })
    expect(errorOf(await on("select $1"))).toMatchObject({
      reason: "parameters",
      hint: "Write $1, $2, … and give one value for each in params."
    })
    expect(errorOf(await on("select * from visit")).hint).toBe("Closest names: visits.")
    expect(errorOf(await on("select nme from visits")).hint).toContain('Call schema with name "visits"')
    expect(
      errorOf(await on("select count(*) from range(100000000000) a, range(100000) b", { timeoutMs: 300 }))
    ).toMatchObject({ category: "query_failed", reason: "timeout" })
    expect(await call("explain", { source: "visits", sql: "from visits" })).toMatchObject({
      ok: true,
      value: { plan: expect.arrayContaining([expect.stringContaining("visits")]) }
    })
    expect(valueOf(await call("schema", { source: "visits" }))).toEqual({
      names: { table: ["visits"], view: ['"my stats"."by page"'] },
      comments: { visits: "one a page view" },
      truncated: false
    })
    expect(valueOf(await call("schema", { source: "visits", name: "visits" }))).toMatchObject({
      objects: [{ name: "visits", columns: [{ name: "id", type: "BIGINT", nullable: false }, {}, {}] }]
    })
    expect(valueOf(await on("select count(*) as n from visits"))).toMatchObject({ rows: [{ n: 5 }] })
  })

  interface OtlpSpan {
    readonly name: string
    readonly kind: number
    readonly traceId: string
    readonly spanId: string
    readonly parentSpanId?: string
    readonly attributes: ReadonlyArray<{ readonly key: string; readonly value: Record<string, unknown> }>
    readonly status: { readonly code: number }
  }

  it("tracing: a span a call beneath the client's, and the statement's beneath it", async () => {
    const spans: Array<OtlpSpan> = []
    const collector = createServer((request, response) => {
      let body = ""
      request.on("data", (chunk: Buffer) => {
        body += chunk.toString("utf8")
      })
      request.on("end", () => {
        if (basename(request.url ?? "") === "traces")
          for (const { scopeSpans } of JSON.parse(body).resourceSpans)
            for (const scope of scopeSpans) spans.push(...scope.spans)
        response.writeHead(200, { "content-type": "application/json" }).end("{}")
      })
    })
    const port = await new Promise<number>((resolve) => {
      collector.listen(0, "127.0.0.1", () => {
        const address = collector.address()
        resolve(typeof address === "object" && address !== null ? address.port : 0)
      })
    })
    try {
      const { call, client } = await connect("tracing/main.js", ["shop.db"], {
        OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`
      })
      const sql = "select id from products limit 3"
      const traceId = "0af7651916cd43dd8448eb211c80319c"
      valueOf(await call("query", { sql }, { traceparent: `00-${traceId}-b7ad6b7169203331-01` }))
      errorOf(await call("query", { sql: "select nme from products" }))
      errorOf(await call("query", { sql: "delete from products" }))
      // The end of the server sends what it has.
      await client.close()
      await eventually("the spans arrive", () => spans.filter(({ name }) => name === "tools/call query")[2])

      const attributesOf = ({ attributes }: OtlpSpan) =>
        Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))
      const named = (name: string) => spans.filter((span) => span.name === name)
      const [asked, misspelt, refused] = named("tools/call query")
      const [ran, failed, ...others] = named("shop.db")
      if (!asked || !misspelt || !refused || !ran || !failed) throw new Error(JSON.stringify(spans))
      expect(others).toEqual([])

      expect(asked).toMatchObject({ traceId, parentSpanId: "b7ad6b7169203331", kind: 2 })
      expect(attributesOf(asked)).toMatchObject({
        "mcp.method.name": "tools/call",
        "gen_ai.tool.name": "query",
        "mcp_query.source": "shop"
      })
      expect(ran).toMatchObject({ traceId, parentSpanId: asked.spanId, kind: 3 })
      const told = attributesOf(ran)
      expect(told).toMatchObject({
        "db.system.name": "sqlite",
        "db.namespace": "shop.db",
        "db.query.text": sql
      })
      expect(Number(told["db.response.returned_rows"])).toBe(3)

      expect(failed).toMatchObject({ parentSpanId: misspelt.spanId, status: { code: 2 } })
      expect(attributesOf(failed)).toMatchObject({
        "error.type": "SQLITE_ERROR",
        "db.response.status_code": "SQLITE_ERROR"
      })
      expect(attributesOf(refused)).toMatchObject({
        "error.type": "tool_error",
        "mcp_query.category": "query_rejected",
        "mcp_query.reason": "read_only"
      })
    } finally {
      collector.closeAllConnections()
      collector.close()
    }
  })
})
