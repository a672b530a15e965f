// Measures what the README claims of start-up, memory and behaviour under load, on a database that it makes.
//   npm run bench            all figures      npm run bench -- --quick   fewer rounds
import { execFileSync, spawn, spawnSync } from "node:child_process"
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { cpus, tmpdir, totalmem } from "node:os"
import { join } from "node:path"
import Database from "better-sqlite3"

const quick = process.argv.includes("--quick")
const rounds = quick ? 5 : 21
const place = mkdtempSync(join(tmpdir(), "mcp-query-bench-"))
const file = join(place, "bench.db")
const hasProc = existsSync("/proc/self/status")

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]
const quantile = (values, q) =>
  [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(q * values.length))]
const tell = (name, value) => console.log(`${name.padEnd(58)} ${value}`)

const statusOf = (pid, field) => {
  try {
    return (
      Number(new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) /
      1024
    )
  } catch {
    return 0
  }
}
const childrenOf = (pid) =>
  readdirSync("/proc").filter((name) => {
    if (!/^\d+$/.test(name)) return false
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "utf8")
      return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]) === pid
    } catch {
      return false
    }
  })
const tree = (pid) => [pid, ...childrenOf(pid).map(Number)]
const cpuOf = (pid) => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
    return (Number(fields[11]) + Number(fields[12])) * 10
  } catch {
    return 0
  }
}

class Server {
  constructor() {
    this.startedAt = performance.now()
    this.child = spawn(process.execPath, ["dist/main.js", `bench=${file}`], {
      stdio: ["pipe", "pipe", "ignore"]
    })
    this.waiting = new Map()
    this.lastId = 0
    let rest = ""
    this.child.stdout.setEncoding("utf8").on("data", (chunk) => {
      const lines = (rest + chunk).split("\n")
      rest = lines.pop()
      for (const line of lines) {
        const message = JSON.parse(line)
        this.waiting.get(message.id)?.(message)
        this.waiting.delete(message.id)
      }
    })
  }
  notify(method, params) {
    this.child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", method, params })}\n`)
  }
  send(method, params) {
    const id = ++this.lastId
    const answer = new Promise((resolve) => this.waiting.set(id, resolve))
    this.child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`)
    return Object.assign(answer, { id })
  }
  open() {
    const clientInfo = { name: "bench", version: "1" }
    return this.send("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo })
  }
  query(sql, more) {
    return this.send("tools/call", { name: "query", arguments: { sql, ...more } })
  }
  async end() {
    this.child.stdin.end()
    await new Promise((done) => this.child.once("exit", done))
  }
}

const makeDatabase = () => {
  const database = new Database(file)
  database.exec("create table t (id integer primary key, name text, price real, made date)")
  database.exec(`with recursive n(i) as (select 1 union all select i + 1 from n where i < 200000)
    insert into t select i, 'item ' || i, i * 1.25, date('2020-01-01', '+' || (i % 2000) || ' days') from n`)
  database.close()
}

const start = async () => {
  const node = []
  const init = []
  const memory = []
  for (let i = 0; i < rounds; i++) {
    const from = performance.now()
    spawnSync(process.execPath, ["-e", "0"])
    node.push(performance.now() - from)
    const server = new Server()
    await server.open()
    init.push(performance.now() - server.startedAt)
    if (hasProc) memory.push(statusOf(server.child.pid, "VmRSS"))
    await server.end()
  }
  tell("node -e 0", `${median(node).toFixed(0)} ms`)
  tell(
    "spawn to initialize answer",
    `${median(init).toFixed(0)} ms (${(median(init) / median(node)).toFixed(2)} × node -e 0)`
  )
  if (hasProc) tell("server process after it", `${median(memory).toFixed(0)} MiB resident`)
}

const sequence = async () => {
  const server = new Server()
  await server.open()
  const from = performance.now()
  await server.query("select 1 as one")
  tell("first query (starts the child process)", `${(performance.now() - from).toFixed(0)} ms`)
  const times = []
  for (let i = 0; i < (quick ? 200 : 2000); i++) {
    const at = performance.now()
    await server.query("select 1 as one")
    times.push(performance.now() - at)
  }
  tell(
    "select 1, one at a time",
    `p50 ${median(times).toFixed(2)} ms, p99 ${quantile(times, 0.99).toFixed(2)} ms`
  )
  await server.end()
}

const big = async () => {
  const server = new Server()
  await server.open()
  const answer = await server.query("select * from t")
  const { rowCount, truncated } = answer.result.structuredContent
  const peak = tree(server.child.pid).reduce((sum, pid) => sum + statusOf(pid, "VmHWM"), 0)
  tell(
    "select * of 200,000 rows",
    `${rowCount} rows, truncated ${truncated}, process tree ${peak.toFixed(0)} MiB at its peak`
  )
  await server.end()
}

const runaway = async () => {
  const server = new Server()
  await server.open()
  await server.query("select 1")
  const endless = server.query(
    "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"
  )
  const pings = []
  const calls = []
  for (const until = performance.now() + (quick ? 1000 : 3000); performance.now() < until; ) {
    let at = performance.now()
    await server.send("ping")
    pings.push(performance.now() - at)
    at = performance.now()
    await server.query("select 1")
    calls.push(performance.now() - at)
  }
  tell("ping during a runaway statement", `p99 ${quantile(pings, 0.99).toFixed(1)} ms of ${pings.length}`)
  tell("select 1 during it", `p99 ${quantile(calls, 0.99).toFixed(1)} ms`)
  const busy = childrenOf(server.child.pid).sort((a, b) => cpuOf(b) - cpuOf(a))[0]
  const from = performance.now()
  server.notify("notifications/cancelled", { requestId: endless.id })
  const alive = () =>
    existsSync(`/proc/${busy}/stat`) && !/\) Z /.test(readFileSync(`/proc/${busy}/stat`, "utf8"))
  const gone = () => {
    try {
      return !alive()
    } catch {
      return true
    }
  }
  while (!gone()) await new Promise((done) => setTimeout(done, 1))
  tell("cancel to the end of its process", `${(performance.now() - from).toFixed(0)} ms`)
  const at = performance.now()
  await server.query(
    "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n",
    { timeoutMs: 1000 }
  )
  tell("the same with timeoutMs 1000", `answered after ${(performance.now() - at).toFixed(0)} ms`)
  await server.end()
}

try {
  if (!existsSync("dist/main.js")) execFileSync(process.execPath, ["scripts/build.mjs"], { stdio: "inherit" })
  const [cpu] = cpus()
  console.log(
    `${cpus().length} × ${cpu?.model.trim()}, ${(totalmem() / 2 ** 30).toFixed(0)} GiB, Node ${process.version}, ${process.platform}\n`
  )
  makeDatabase()
  await start()
  await sequence()
  if (hasProc) {
    await big()
    await runaway()
  }
} finally {
  rmSync(place, { recursive: true, force: true })
}
