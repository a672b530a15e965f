// What a workbook costs: the first question to a big sheet, and the next ones, beside a full read by ExcelJS.
// Prints a table; needs `npm run build` first. Process figures come from /proc, so they are there on Linux only.
import { fork, spawn } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { cpus, tmpdir, totalmem } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"

const kinds = ["number", "name", "amount", "day", "note"]

/** Numbers, repeated and unrepeated texts, decimals and dates in turn. */
const write = async (file, rows, columns) => {
  const { default: ExcelJS } = await import("exceljs")
  const book = new ExcelJS.stream.xlsx.WorkbookWriter({
    filename: file,
    useSharedStrings: true,
    useStyles: true
  })
  const sheet = book.addWorksheet("Data")
  sheet.columns = Array.from({ length: columns }, (_, i) => ({
    header: `${kinds[i % 5]} ${i}`,
    ...(i % 5 === 3 ? { style: { numFmt: "yyyy-mm-dd" } } : {})
  }))
  for (let r = 0; r < rows; r++) {
    const cells = Array.from({ length: columns }, (_, c) => {
      const n = (r * 31 + c * 17) % 1000003
      return [n, `name ${n % 5000}`, n / 100, new Date(Date.UTC(2020, 0, 1 + (n % 2000))), `ref-${r}-${c}`][
        c % 5
      ]
    })
    sheet.addRow(cells).commit()
  }
  await book.commit()
}

const readWithExcelJs = async (file) => {
  const { default: ExcelJS } = await import("exceljs")
  const from = performance.now()
  const book = new ExcelJS.Workbook()
  await book.xlsx.readFile(file)
  const ms = performance.now() - from
  process.send({ ms, peakMiB: process.resourceUsage().maxRSS / 1024, rows: book.worksheets[0].rowCount })
  process.disconnect()
}

/** Runs a part of this script in a process of its own, so that its memory is its own. */
const apart = (...args) =>
  new Promise((resolve, reject) => {
    const child = fork(fileURLToPath(import.meta.url), args, { execArgv: ["--max-old-space-size=8192"] })
    let answer
    child.on("message", (message) => {
      answer = message
    })
    child.on("exit", (code) =>
      code === 0 ? resolve(answer) : reject(new Error(`${args[0]}: exit code ${code}`))
    )
  })

const statusOf = (pid, field) => {
  try {
    const found = new RegExp(`^${field}:\\s+(\\d+)`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8"))
    return Number(found?.[1] ?? 0)
  } catch {
    return 0
  }
}

const treeOf = (root) => {
  const parents = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => [Number(pid), statusOf(pid, "PPid")])
  const tree = [root]
  for (const pid of tree) for (const [child, parent] of parents) if (parent === pid) tree.push(child)
  return tree
}

/** The server under test, and the most memory that each of its processes ever had. */
class Server {
  #lastId = 0
  #waiting = new Map()
  #peaks = new Map()

  constructor(file) {
    const main = fileURLToPath(new URL("../dist/main.js", import.meta.url))
    this.process = spawn(process.execPath, [main, `book=${file}`], { stdio: ["pipe", "pipe", "ignore"] })
    createInterface({ input: this.process.stdout }).on("line", (line) => {
      const { id, result } = JSON.parse(line)
      this.#waiting.get(id)?.(result)
    })
    this.timer = setInterval(() => this.look(), 100)
  }

  look() {
    for (const pid of treeOf(this.process.pid)) {
      const peak = statusOf(pid, "VmHWM")
      this.#peaks.set(pid, Math.max(peak, this.#peaks.get(pid) ?? 0))
    }
  }

  get peakMiB() {
    return [...this.#peaks.values()].reduce((sum, kib) => sum + kib, 0) / 1024
  }

  request(method, params) {
    const id = ++this.#lastId
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve)
      this.process.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`)
    })
  }

  async open() {
    await this.request("initialize", {
      protocolVersion: "2025-06-18",
      capabilities: {},
      clientInfo: { name: "bench", version: "1" }
    })
    this.process.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
  }

  async query(sql) {
    const from = performance.now()
    const result = await this.request("tools/call", { name: "query", arguments: { sql, timeoutMs: 30000 } })
    const ms = performance.now() - from
    if (result.isError) throw new Error(result.content[0].text)
    this.look()
    return { ms, rows: result.structuredContent.rows }
  }

  async close() {
    clearInterval(this.timer)
    this.process.stdin.end()
    await new Promise((resolve) => this.process.once("exit", resolve))
  }
}

const ours = async (file) => {
  const server = new Server(file)
  await server.open()
  const first = await server.query(
    'select "name 1" as name, count(*) as n, sum("amount 2") as total from Data group by 1 order by total desc limit 5'
  )
  const next = await server.query(
    'select count(*) as n, max("day 3") as last from Data where "number 0" > 500000'
  )
  const result = { firstMs: first.ms, nextMs: next.ms, peakMiB: server.peakMiB }
  await server.close()
  return result
}

const ms = (value) => `${Math.round(value).toLocaleString("en")} ms`
const mib = (value) => `${Math.round(value)} MiB`
const line = (...cells) => console.log(`| ${cells.join(" | ")} |`)

const main = async () => {
  const folder = mkdtempSync(join(tmpdir(), "mcp-query-bench-"))
  try {
    console.log(
      `${cpus().length} × ${cpus()[0]?.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.version}\n`
    )
    line("workbook", "reader", "first answer", "next answer", "peak memory of all processes")
    line("---", "---", "---", "---", "---")
    for (const [rows, columns] of [
      [100_000, 20],
      [300_000, 10]
    ]) {
      const file = join(folder, `${rows}x${columns}.xlsx`)
      await apart("write", file, String(rows), String(columns))
      const name = `${rows.toLocaleString("en")} × ${columns}`
      const it = await ours(file)
      line(name, "mcp-query", ms(it.firstMs), ms(it.nextMs), mib(it.peakMiB))
      if (columns !== 20) continue
      const full = await apart("read", file)
      line(name, "ExcelJS, full read", ms(full.ms), "", mib(full.peakMiB))
      line(name, "ratio", (it.firstMs / full.ms).toFixed(2), "", (it.peakMiB / full.peakMiB).toFixed(2))
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const [role, file, rows, columns] = process.argv.slice(2)
if (role === "write") {
  await write(file, Number(rows), Number(columns))
  process.disconnect()
} else if (role === "read") await readWithExcelJs(file)
else await main()
