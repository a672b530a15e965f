/**
 * `mcp-query demo`: writes sample sources, starts the real server on them, and talks to it with the official client,
 * so that a person sees what a model would.
 */
import { copyFileSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import type { Scope } from "effect/Scope"
import * as ShopDatabase from "../Demo/ShopDatabase.js"
import { ErrorAnswer } from "../PublicError.js"
import { QueryResult } from "../QueryResult.js"
import { version } from "../Version.js"
import { textTable } from "./TextTable.js"

const say = (text = "") => Effect.sync(() => void process.stdout.write(`${text}\n`))
const heading = (text: string) => say(process.stdout.isTTY ? `\n\u001b[1m${text}\u001b[0m` : `\n${text}`)

const indent = (text: string) => text.replace(/^/gm, "  ")

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "mcp-query-demo-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

/** The build writes the workbook beside the command, whose parts stand in a folder beneath. */
const builtBudget = fileURLToPath(new URL("../budget.xlsx", import.meta.url))

const Result = Schema.Struct({
  isError: Schema.optional(Schema.Boolean),
  content: Schema.Tuple(Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }))
})

const Answer = Schema.parseJson(QueryResult)

const Failed = Schema.parseJson(ErrorAnswer)

interface Session {
  readonly client: Client
  readonly log: ReadonlyArray<string>
}

const connect = (sources: ReadonlyArray<string>): Effect.Effect<Session, never, Scope> =>
  Effect.gen(function* () {
    const program = process.argv[1] ?? ""
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: [program, ...sources],
      stderr: "pipe"
    })
    let text = ""
    transport.stderr?.on("data", (chunk: Buffer) => {
      text += chunk.toString("utf8")
    })
    const client = new Client({ name: "mcp-query-demo", version })
    yield* Effect.acquireRelease(
      Effect.promise(() => client.connect(transport)),
      () => Effect.promise(() => client.close())
    )
    return {
      client,
      get log() {
        return text.split("\n").filter(Boolean)
      }
    }
  })

const call = ({ client }: Session, name: string, args: Record<string, unknown>) =>
  Effect.flatMap(
    Effect.promise((signal) => client.callTool({ name, arguments: args }, undefined, { signal })),
    Schema.decodeUnknown(Result)
  )

const ask = (
  session: Session,
  question: string,
  source: string,
  sql: string,
  params: ReadonlyArray<unknown> = []
) =>
  Effect.gen(function* () {
    yield* heading(question)
    yield* say(
      indent(`query on ${source}: ${sql}${params.length > 0 ? `   params: ${JSON.stringify(params)}` : ""}\n`)
    )
    const { content } = yield* call(session, "query", { source, sql, params, format: "columnar" })
    const result = yield* Schema.decode(Answer)(content[0].text)
    const rows = result.rows.map((row) => (Array.isArray(row) ? row : Object.values(row)))
    yield* say(textTable(result.columns, rows))
    yield* say(indent(`${result.rowCount} rows in ${result.durationMs} ms`))
  })

const fail = (session: Session, what: string, source: string, sql: string) =>
  Effect.gen(function* () {
    yield* heading(what)
    yield* say(indent(`query on ${source}: ${sql}\n`))
    const { content } = yield* call(session, "query", { source, sql })
    const { error } = yield* Schema.decode(Failed)(content[0].text)
    yield* say(indent(`${error.category} / ${error.reason}: ${error.message}`))
    if (error.hint !== undefined) yield* say(indent(`hint: ${error.hint}`))
  })

const runaway = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"

const cancelOne = (session: Session) =>
  Effect.gen(function* () {
    yield* heading("A runaway statement, while the server goes on answering")
    yield* say(indent(`query on shop: ${runaway}\n`))
    const fiber = yield* Effect.fork(call(session, "query", { source: "shop", sql: runaway }))
    const from = performance.now()
    yield* Effect.promise(() => session.client.ping())
    yield* say(indent(`ping answered after ${(performance.now() - from).toFixed(1)} ms`))
    const again = performance.now()
    yield* call(session, "query", { source: "shop", sql: "select count(*) from orders" })
    yield* say(indent(`another query answered after ${(performance.now() - again).toFixed(1)} ms`))
    yield* Fiber.interrupt(fiber)
    // The log line of a cancelled call is written once the engine has stopped.
    const stopped = Effect.suspend(() =>
      session.log.some((line) => line.includes('"outcome":"cancelled"'))
        ? Effect.void
        : Effect.fail("not yet" as const)
    )
    yield* Effect.retry(stopped, { times: 200, schedule: Schedule.spaced("25 millis") })
    yield* say(indent("cancelled: the statement's process was ended"))
  })

const LogLine = Schema.parseJson(
  Schema.Struct(
    {
      arguments: Schema.Struct(
        { sql: Schema.String },
        Schema.Record({ key: Schema.String, value: Schema.Unknown })
      )
    },
    Schema.Record({ key: Schema.String, value: Schema.Unknown })
  )
)

/** A log line with its statement shortened, so that the rest can be seen. */
const shortened = (line: string) =>
  Effect.map(Schema.decode(LogLine)(line), ({ arguments: { sql }, ...rest }) =>
    JSON.stringify({ ...rest, arguments: { sql: sql.length > 40 ? `${sql.slice(0, 40)}…` : sql } })
  )

/** Runs the whole demonstration. */
export const demo: Effect.Effect<void> = Effect.gen(function* () {
  const place = yield* folder
  const shop = join(place, "shop.db")
  const budget = join(place, "budget.xlsx")
  yield* ShopDatabase.write(shop)
  yield* Effect.sync(() => copyFileSync(builtBudget, budget))
  yield* say(
    `mcp-query ${version}: a sample shop (SQLite) and a budget (Excel), served over stdio to the official MCP client`
  )
  const session = yield* connect([`shop=${shop}`, `budget=${budget}`])

  yield* heading("The tools that a model sees")
  const { tools } = yield* Effect.promise(() => session.client.listTools())
  yield* say(
    textTable(
      ["tool", "title"],
      tools.map(({ name, title }) => [name, title])
    )
  )

  yield* ask(
    session,
    "Which products bring in the most?",
    "shop",
    "select p.name, sum(l.quantity) as sold, printf('%.2f', sum(l.quantity * l.unit_price_cents) / 100.0) as revenue from order_lines l join products p on p.id = l.product_id join orders o on o.id = l.order_id where o.status <> 'cancelled' group by p.id order by sum(l.quantity * l.unit_price_cents) desc limit 5"
  )
  yield* ask(
    session,
    "How did the last months of 2025 go?",
    "shop",
    "select month, orders, revenue_cents from revenue_by_month where month >= ? order by month",
    ["2025-09"]
  )
  yield* ask(
    session,
    "Which customers left no city, and what did they note?",
    "shop",
    "select c.name, c.email, o.ordered_on, o.note from customers c join orders o on o.customer_id = c.id where c.city is null and o.note is not null order by o.ordered_on limit 5"
  )
  yield* ask(
    session,
    "The workbook: which departments have how much of their budget left?",
    "budget",
    'select b.Department, b.Planned, b.Spent, b."Left", count(s.Invoice) as invoices from [Budget 2025] b join SpendingTable s on s.Department = b.Department group by b.Department order by b."Left"'
  )
  yield* fail(session, "A write is refused", "shop", "delete from orders where status = 'cancelled'")
  yield* fail(session, "A failed query says what to do", "shop", "select naem from customers")
  yield* cancelOne(session)

  yield* heading("What the log has of it, one line a call")
  const calls = session.log.filter((line) => line.includes('"event":"tool_call"'))
  for (const line of calls) yield* say(indent(yield* shortened(line)))
  yield* say(`\nServe your own data: mcp-query shop=./shop.db   (mcp-query --help)`)
}).pipe(Effect.scoped, Effect.orDie)
