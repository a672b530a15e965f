/**
 * A driver that throws from its socket's handler, in the running server: it costs the calls of that source and nothing
 * else. A module loaded before the server lets the handlers throw when an engine sends a certain text.
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { type OwnServer, ownServer, runAs } from "../Adapter/Postgres/TestServer.js"
import { password } from "../Adapter/SqlServer/Harness.js"
import { oneRow, start, type TdsServer } from "../Adapter/SqlServer/TdsServer.js"
import { errorOf, valueOf } from "../support/Answer.js"
import { fill, folder } from "../support/Folder.js"
import { eventually } from "../support/Process.js"
import { Program } from "../support/Program.js"

/** What the engines send; no statement has it as it is. */
const marker = "driver-trips-here"

const place = folder()
const shop = fill(join(place, "shop.db"), "create table t (a)", "insert into t values (1)")
const preload = join(place, "preload.mjs")
writeFileSync(
  preload,
  `import { Socket } from "node:net"
  const { emit } = Socket.prototype
  Socket.prototype.emit = function (name, ...values) {
    if (name === "data" && Buffer.isBuffer(values[0]) && values[0].includes(${JSON.stringify(marker)}))
      throw new TypeError("The driver tripped.")
    return emit.call(this, name, ...values)
  }`
)

const scope = Effect.runSync(Scope.make())
const run = <A>(effect: Effect.Effect<A, never, Scope.Scope>) =>
  Effect.runPromise(Scope.extend(effect, scope))
let postgres: OwnServer
let sqlServer: TdsServer
/** The replies that SQL Server holds back. */
const withheld: Array<() => void> = []

beforeAll(async () => {
  postgres = await run(ownServer())
  sqlServer = await run(
    start({
      statement: ({ sql }, reply) => {
        if (sql.includes("trip")) return reply.raw(Buffer.from(marker))
        const answer = () => reply.send(oneRow)
        if (sql.includes("hold")) withheld.push(answer)
        else answer()
      }
    })
  )
})
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

const launch = () => {
  const file = join(place, "config.json")
  const sources = {
    shop: { engine: "sqlite", file: shop },
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the configuration's own way to name a variable
    crm: { engine: "postgres", url: "${CRM_URL}" },
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the configuration's own way to name a variable
    erp: { engine: "mssql", url: "${ERP_URL}" }
  }
  writeFileSync(file, JSON.stringify({ sources }))
  return new Program(["--config", file], {
    env: {
      NODE_OPTIONS: `--import ${pathToFileURL(preload)}`,
      CRM_URL: postgres.url,
      ERP_URL: `mssql://reader:${encodeURIComponent(password)}@127.0.0.1:${sqlServer.port}/erp?encrypt=false`
    }
  }).initialize()
}

interface Case {
  readonly source: string
  readonly other: string
  /** Its answer makes the driver's handler throw. */
  readonly trip: string
  readonly hold: string
  readonly isHeld: () => boolean | Promise<boolean>
}

const crm: Case = {
  source: "crm",
  other: "erp",
  trip: "select 'driver' || '-trips-here' as a",
  hold: "select 1 as a, pg_sleep(10)",
  isHeld: async () => {
    const [[[count] = []] = []] = await runAs(postgres.url, [
      "select count(*)::int from pg_stat_activity where state = 'active' and query like '%pg_sleep(10)%' and pid <> pg_backend_pid()"
    ])
    return Number(count) > 0
  }
}
const erp: Case = {
  source: "erp",
  other: "crm",
  trip: "select 'trip' as a",
  hold: "select 'hold' as a",
  isHeld: () => withheld.length > 0
}

describe("a throw from a socket's handler", () => {
  it.each([crm, erp])("of $source fails its calls, and those of no other source", async (here) => {
    const there = here === crm ? erp : crm
    const program = await launch()
    const query = (source: string, sql: string) => program.query({ source, sql })
    const held = (source: string, sql: string) => program.beginQuery({ source, sql })
    for (const source of ["shop", "crm", "erp"]) valueOf(await query(source, "select 1 as a"))

    const mine = held(here.source, here.hold)
    const others = held(there.source, there.hold)
    await eventually("both calls are under way", async () => (await here.isHeld()) && (await there.isHeld()))
    const closed = { category: "connection_failed", reason: "closed", retryable: true, source: here.source }
    expect(errorOf(await query(here.source, here.trip))).toMatchObject(closed)
    expect(errorOf(await program.answerTo(mine))).toMatchObject(closed)
    const lines = (event: string) => program.log.filter((line) => line.event === event)
    const [lost] = await eventually("the fault is logged", () =>
      lines("source_lost").filter(({ breaker }) => breaker === "closed")
    )
    expect(lost).toMatchObject({ level: "error", source: here.source })
    expect(JSON.stringify(lost?.["cause"])).toMatch(/TypeError.*The driver tripped\..*preload\.mjs/)

    // The source is there again at once; a second fault of the kind keeps calls away from it for a while.
    valueOf(await query(here.source, "select 1 as a"))
    expect(errorOf(await query(here.source, here.trip))).toMatchObject(closed)
    expect(errorOf(await query(here.source, "select 1 as a"))).toMatchObject({
      ...closed,
      message: expect.stringContaining("held back")
    })
    for (const source of ["shop", there.source]) valueOf(await query(source, "select 1 as a"))
    await eventually("the source is tried again", async () => (await query(here.source, "select 1 as a")).ok)

    for (const answer of withheld.splice(0)) answer()
    expect(valueOf(await program.answerTo(others)).rowCount).toBe(1)
    expect(lines("uncaught")).toEqual([])
    program.closeStdin()
    expect(await program.ended).toEqual({ code: 0, signal: null })
  })
})
