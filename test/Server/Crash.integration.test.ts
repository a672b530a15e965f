/**
 * A driver that throws from its socket's handler, in the running server and in an application that wants the shield: it
 * costs the calls of that source and nothing else. A module loaded before the server lets the handlers throw when an engine sends a certain text.
 */
import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { build } from "esbuild"
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
const applications: Array<string> = []
afterAll(async () => {
  for (const file of applications) rmSync(file, { force: true })
  await Effect.runPromise(Scope.close(scope, Exit.void))
})

const environment = () => ({
  NODE_OPTIONS: `--import ${pathToFileURL(preload)}`,
  CRM_URL: postgres.url,
  ERP_URL: `mssql://reader:${encodeURIComponent(password)}@127.0.0.1:${sqlServer.port}/erp?encrypt=false`
})

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
  return new Program(["--config", file], { env: environment() }).initialize()
}

/** An application with the same two databases; the library is read from its sources. */
const application = async (name: string, text: string) => {
  const file = fileURLToPath(
    new URL(`../../node_modules/.cache/mcp-query/${name}-${process.pid}.mjs`, import.meta.url)
  )
  applications.push(file)
  const { password: secret, pathname, port, username } = new URL(postgres.url)
  const shared = { host: "127.0.0.1" }
  const crm = { ...shared, port: Number(port), user: username, database: pathname.slice(1) }
  const erp = { ...shared, port: sqlServer.port, user: "reader", encrypt: false }
  const contents = `
    import { Effect, Layer, Logger, Redacted } from "effect"
    import { Postgres, SqlServer } from "../../src/adapters.js"
    import { Sources, Tools } from "../../src/index.js"
    import { serve } from "../../src/server.js"
    const crm = Postgres.layer({ ...${JSON.stringify(crm)}, password: Redacted.make(process.env["CRM_PASSWORD"]) })
    const erp = SqlServer.layer({ ...${JSON.stringify(erp)}, password: Redacted.make(process.env["ERP_PASSWORD"]) })
    const sources = Sources.layer([
      { id: "crm", engine: "postgres", adapter: crm },
      { id: "erp", engine: "mssql", adapter: erp }
    ]).pipe(Layer.provide(Sources.crashShield))
    const query = (args) => Effect.flatMap(Tools.Tools, (tools) => tools.query(args))
    const run = (effect) =>
      effect.pipe(
        Effect.provide(Tools.layer.pipe(Layer.provideMerge(sources))),
        Effect.provide(Logger.replace(Logger.defaultLogger, Logger.withConsoleError(Logger.logfmtLogger))),
        Effect.runPromise
      )
    ${text}`
  await build({
    stdin: { contents, resolveDir: fileURLToPath(new URL(".", import.meta.url)) },
    outfile: file,
    bundle: true,
    packages: "external",
    platform: "node",
    target: "node20",
    format: "esm"
  })
  return new Program([], {
    file,
    env: {
      NODE_OPTIONS: environment().NODE_OPTIONS,
      CRM_PASSWORD: decodeURIComponent(secret),
      ERP_PASSWORD: password
    }
  })
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

/** A throw costs its source's calls, then keeps calls away from it for a while; nothing else notices. */
const costsItsSourceOnly = async (
  program: Program,
  here: Case,
  there: Case,
  others: ReadonlyArray<string> = []
) => {
  const query = (source: string, sql: string) => program.query({ source, sql })
  const held = (source: string, sql: string) => program.beginQuery({ source, sql })
  for (const source of [...others, "crm", "erp"]) valueOf(await query(source, "select 1 as a"))

  const mine = held(here.source, here.hold)
  const theirs = held(there.source, there.hold)
  await eventually("both calls are under way", async () => (await here.isHeld()) && (await there.isHeld()))
  const closed = { category: "connection_failed", reason: "closed", retryable: true, source: here.source }
  expect(errorOf(await query(here.source, here.trip))).toMatchObject(closed)
  expect(errorOf(await program.answerTo(mine))).toMatchObject(closed)

  // The source is there again at once; a second fault of the kind keeps calls away from it for a while.
  valueOf(await query(here.source, "select 1 as a"))
  expect(errorOf(await query(here.source, here.trip))).toMatchObject(closed)
  expect(errorOf(await query(here.source, "select 1 as a"))).toMatchObject({
    ...closed,
    message: expect.stringContaining("held back")
  })
  for (const source of [...others, there.source]) valueOf(await query(source, "select 1 as a"))
  await eventually("the source is tried again", async () => (await query(here.source, "select 1 as a")).ok)

  for (const answer of withheld.splice(0)) answer()
  expect(valueOf(await program.answerTo(theirs)).rowCount).toBe(1)
}

const bothWays: ReadonlyArray<readonly [string, Case, Case]> = [
  ["crm", crm, erp],
  ["erp", erp, crm]
]

describe("a throw from a socket's handler in the command", () => {
  it.each(bothWays)("of %s fails its calls, and those of no other source", async (_, here, there) => {
    const program = await launch()
    await costsItsSourceOnly(program, here, there, ["shop"])
    const lines = (event: string) => program.log.filter((line) => line.event === event)
    const [lost] = await eventually("the fault is logged", () =>
      lines("source_lost").filter(({ breaker }) => breaker === "closed")
    )
    expect(lost).toMatchObject({ level: "error", source: here.source })
    expect(JSON.stringify(lost?.["cause"])).toMatch(/TypeError.*The driver tripped\..*preload\.mjs/)
    expect(lines("uncaught")).toEqual([])
    program.closeStdin()
    expect(await program.ended).toEqual({ code: 0, signal: null })
  })
})

describe("a throw from a socket's handler in an application with the shield", () => {
  it.each(bothWays)("of %s fails its calls, and those of no other source", async (name, here, there) => {
    const program = await application(
      `serve-${name}`,
      "await Effect.runPromise(Effect.provide(serve(), sources))"
    )
    await program.initialize()
    await costsItsSourceOnly(program, here, there)
    expect(program.stderr).toContain("source_lost")
    expect(program.stderr).toMatch(/TypeError.*The driver tripped\.[\s\S]*preload\.mjs/)
    program.closeStdin()
    expect(await program.ended).toEqual({ code: 0, signal: null })
  })

  it.each(bothWays)(
    "of %s is none of what the application throws after an answer: that ends it",
    async (name) => {
      const program = await application(
        `own-${name}`,
        `await run(Effect.zipRight(
        Effect.all([query({ source: "${name}", sql: "select 1 as a" }), query({ source: "${name}", sql: "select 1 as a" })]),
        Effect.async(() => { setImmediate(() => { throw new RangeError("the application's own") }) })
      ))`
      )
      expect(await program.ended).toEqual({ code: 1, signal: null })
      expect(program.stderr).toMatch(/RangeError: the application's own[\s\S]*own-.*\.mjs/)
    }
  )

  it("is told apart by the application's own listener, and so is a promise that nobody awaits", async () => {
    const program = await application(
      "listens",
      `const heard = []
      process.on("uncaughtException", (error) => heard.push([error.message, Sources.isDriverFault()]))
      await run(Effect.zipRight(
        Effect.flip(query({ source: "erp", sql: "select 'trip' as a" })),
        Effect.async((resume) => {
          setImmediate(() => { throw new Error("thrown") })
          Promise.reject(new Error("rejected"))
          setTimeout(() => resume(Effect.void), 1)
        })
      ))
      process.on("exit", () => console.error(JSON.stringify(heard.sort())))`
    )
    expect(await program.ended).toEqual({ code: 0, signal: null })
    expect(program.stderr).toContain(
      JSON.stringify([
        ["The driver tripped.", true],
        ["rejected", false],
        ["thrown", false]
      ])
    )
  })

  it("needs one listener, which goes with the last of its sources", async () => {
    const program = await application(
      "twice",
      `const counts = []
      const count = Effect.sync(() => counts.push(process.listenerCount("uncaughtException")))
      const inner = Effect.scoped(Effect.zipRight(Layer.build(sources), count))
      await Effect.runPromise(Effect.scoped(Effect.zipRight(Layer.build(sources), Effect.zipRight(inner, count))))
      await Effect.runPromise(count)
      console.error(JSON.stringify(counts))`
    )
    expect(await program.ended).toEqual({ code: 0, signal: null })
    expect(program.stderr).toBe("[1,1,0]\n")
  })
})
