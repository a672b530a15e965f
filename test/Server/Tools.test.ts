/** What a client sees of the tools, and what it gets when it calls them: arguments, formats, errors. */
import { randomBytes } from "node:crypto"
import {
  chmodSync,
  cpSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { beforeAll, describe, expect, it } from "vitest"
import { errorOf, valueOf } from "../support/Answer.js"
import { connect, type TestClient } from "../support/Client.js"
import { fill, folder, lock } from "../support/Folder.js"

const place = folder()
const shop = fill(
  join(place, "shop.db"),
  "create table users (id integer primary key, name text, made text)",
  "insert into users values (1, 'Ada', '2024-01-01'), (2, 'Grace', null)"
)

let one: TestClient
let two: TestClient
beforeAll(async () => {
  const limits = { maxRows: 10, timeoutMs: 5000 }
  writeFileSync(
    join(place, "two.json"),
    JSON.stringify({
      sources: {
        shop: { engine: "sqlite", file: "shop.db", limits },
        crm: { engine: "sqlite", file: "shop.db" }
      }
    })
  )
  ;[one, two] = await Promise.all([connect([`shop=${shop}`]), connect(["--config", join(place, "two.json")])])
})

describe("tools/list", () => {
  it("holds the tools in a stable order, under 4 kB", async () => {
    const lists = [await one.client.listTools(), await one.client.listTools()]
    expect(lists[0]).toEqual(lists[1])
    expect(lists[0]?.tools.map(({ name }) => name)).toEqual(["query", "schema", "explain"])
    expect(Buffer.byteLength(JSON.stringify(lists[0]))).toBeLessThan(4096)
  })

  it("stays under 4 kB whatever a source is called and described by", async () => {
    const config = join(place, "wide.json")
    const source = { engine: "sqlite", file: "shop.db", description: "é漢𝄞".repeat(100) }
    writeFileSync(config, JSON.stringify({ sources: { ["a".repeat(50)]: source } }))
    const wide = await connect(["--config", config])
    const text = JSON.stringify(await wide.client.listTools())
    expect(Buffer.byteLength(text)).toBeLessThan(4096)
    expect(text).toContain("𝄞é漢…")
    await wide.close()
  })

  it("says of each tool that it only reads, and takes no other arguments", async () => {
    const { tools } = await one.client.listTools()
    for (const tool of tools) {
      expect(tool.annotations).toEqual({
        readOnlyHint: true,
        destructiveHint: false,
        idempotentHint: true,
        openWorldHint: false
      })
      expect(tool.title).not.toBe("")
      expect(tool.description?.length).toBeGreaterThan(20)
      expect(tool.inputSchema).toMatchObject({ type: "object", additionalProperties: false })
      expect(tool.outputSchema).toMatchObject({ type: "object" })
    }
  })

  it("describes the arguments of query", async () => {
    const { tools } = await one.client.listTools()
    const { properties = {}, required } = tools[0]?.inputSchema ?? {}
    expect(Object.keys(properties)).toEqual(["sql", "source", "params", "maxRows", "timeoutMs", "format"])
    expect(required).toEqual(["sql"])
    expect(properties).toMatchObject({
      sql: { type: "string", minLength: 1, maxLength: 100_000 },
      source: { enum: ["shop"] },
      params: { type: "array" },
      maxRows: { type: "integer", minimum: 1, maximum: 1000 },
      timeoutMs: { type: "integer", minimum: 1, maximum: 30_000 },
      format: { enum: ["records", "columnar"] }
    })
  })

  it("names several sources and requires one of them", async () => {
    const { tools } = await two.client.listTools()
    expect(tools[0]?.inputSchema).toMatchObject({
      properties: { source: { enum: ["shop", "crm"] } },
      required: ["sql", "source"]
    })
    expect(tools[0]?.description).toContain("crm")
  })
})

describe("results", () => {
  it("records", async () => {
    const { durationMs, ...rest } = valueOf(await one.query("select id, name from users order by id"))
    expect(durationMs).toBe(Math.round(durationMs * 10) / 10)
    expect(rest).toEqual({
      columns: ["id", "name"],
      columnTypes: ["INTEGER", "TEXT"],
      rows: [
        { id: 1, name: "Ada" },
        { id: 2, name: "Grace" }
      ],
      rowCount: 2,
      truncated: false
    })
  })

  it("columnar", async () => {
    const { rows } = valueOf(await one.query({ sql: "select name, made from users", format: "columnar" }))
    expect(rows).toEqual([
      ["Ada", "2024-01-01"],
      ["Grace", null]
    ])
  })

  it("the SQL is not echoed", async () => {
    const mark = randomBytes(8).toString("hex")
    expect(JSON.stringify(await one.query(`select 1 as a -- ${mark}`))).not.toContain(mark)
  })

  it("maxRows of a call", async () => {
    const value = valueOf(await one.query({ sql: "select id from users", maxRows: 1 }))
    expect(value).toMatchObject({ rowCount: 1, truncated: true, truncatedBy: "max_rows" })
    expect(valueOf(await one.query({ sql: "select id from users", maxRows: 2 })).truncated).toBe(false)
  })

  it("limits hold for the bytes of the format asked for", async () => {
    const sql =
      "with recursive c(i) as (values (1) union all select i + 1 from c) select i as a_rather_long_column_name from c"
    for (const format of ["records", "columnar"]) {
      const value = valueOf(await one.query({ sql, format }))
      expect(value.truncated).toBe(true)
      expect(Buffer.byteLength(JSON.stringify(value.rows))).toBeLessThanOrEqual(100_000)
    }
  })

  it("a big table: the first thousand rows", async () => {
    const big = fill(
      join(place, "big.db"),
      "create table t (id integer primary key, name text, amount real)",
      "with recursive c(i) as (values (1) union all select i + 1 from c where i < 200000) insert into t select i, 'name ' || i, i / 7.0 from c"
    )
    const client = await connect([big])
    const value = valueOf(await client.query("select * from t"))
    expect(value).toMatchObject({ rowCount: 1000, truncated: true, truncatedBy: "max_rows" })
    expect(value.rows[999]).toEqual({ id: 1000, name: "name 1000", amount: 1000 / 7 })
  })

  it("explain gives the plan, and runs nothing", async () => {
    const endless = "with recursive c(i) as (values (1) union all select i + 1 from c) select count(*) from c"
    for (const sql of ["select * from users where id = 1", endless]) {
      const { plan } = valueOf(await one.call("explain", { sql })) as unknown as { plan: Array<string> }
      expect(plan.length).toBeGreaterThan(0)
    }
    expect(errorOf(await one.call("explain", { sql: "delete from users" })).reason).toBe("read_only")
    expect(errorOf(await one.call("explain", { sql: "select nme from users" })).reason).toBe("unknown_column")
  })
})

describe("invalid input", () => {
  const cases: ReadonlyArray<readonly [string, object, string, ReadonlyArray<object>]> = [
    ["no arguments", {}, "missing_argument", [{ path: "sql", reason: "missing_argument" }]],
    ["sql that is no text", { sql: 1 }, "wrong_type", [{ path: "sql", reason: "wrong_type" }]],
    ["sql that is null", { sql: null }, "wrong_type", [{ path: "sql", received: "null" }]],
    ["empty sql", { sql: "" }, "out_of_range", [{ path: "sql", reason: "out_of_range" }]],
    [
      "100,001 characters",
      { sql: `select 1 ${" ".repeat(99_992)}` },
      "out_of_range",
      [
        {
          path: "sql",
          expected: expect.stringContaining("100,000"),
          received: expect.stringContaining("100001")
        }
      ]
    ],
    [
      "an unknown argument, with the closest known one",
      { sql: "select 1", maxrow: 5 },
      "unknown_argument",
      [{ path: "maxrow", reason: "unknown_argument", expected: expect.stringContaining("maxRows") }]
    ],
    [
      "an unknown argument like no other",
      { sql: "select 1", zzzzzz: true },
      "unknown_argument",
      [{ path: "zzzzzz", expected: expect.stringContaining("timeoutMs") }]
    ],
    [
      "an unknown source",
      { sql: "select 1", source: "crm" },
      "unknown_source",
      [{ path: "source", reason: "unknown_source", expected: expect.stringContaining("shop") }]
    ],
    ["a source that is no text", { sql: "select 1", source: 1 }, "wrong_type", [{ path: "source" }]],
    ["params that are no array", { sql: "select ?", params: "x" }, "wrong_type", [{ path: "params" }]],
    [
      "params of wrong types, each",
      { sql: "select ?, ?, ?, ?", params: [{}, 1, [], "x"] },
      "wrong_type",
      [{ path: "params[0]" }, { path: "params[2]" }]
    ],
    ["maxRows of 0", { sql: "select 1", maxRows: 0 }, "out_of_range", [{ path: "maxRows" }]],
    [
      "maxRows beyond the cap",
      { sql: "select 1", maxRows: 1001 },
      "out_of_range",
      [{ path: "maxRows", expected: expect.stringContaining("1000") }]
    ],
    ["maxRows as text", { sql: "select 1", maxRows: "5" }, "wrong_type", [{ path: "maxRows" }]],
    ["maxRows with a fraction", { sql: "select 1", maxRows: 1.5 }, "out_of_range", [{ path: "maxRows" }]],
    [
      "timeoutMs beyond the cap",
      { sql: "select 1", timeoutMs: 30_001 },
      "out_of_range",
      [{ path: "timeoutMs" }]
    ],
    ["timeoutMs of 0", { sql: "select 1", timeoutMs: 0 }, "out_of_range", [{ path: "timeoutMs" }]],
    [
      "a format that is none",
      { sql: "select 1", format: "csv" },
      "out_of_range",
      [{ path: "format", expected: expect.stringMatching(/records.*columnar/) }]
    ],
    [
      "every fault at once",
      { sql: 5, source: "nosuch", params: {}, maxRows: -1, timeoutMs: "soon", format: 7, colour: "red" },
      "wrong_type",
      [
        { path: "sql", reason: "wrong_type" },
        { path: "source", reason: "unknown_source" },
        { path: "params", reason: "wrong_type" },
        { path: "maxRows", reason: "out_of_range" },
        { path: "timeoutMs", reason: "wrong_type" },
        { path: "format", reason: "wrong_type" },
        { path: "colour", reason: "unknown_argument" }
      ]
    ]
  ]

  it.each(cases)("%s", async (_, args, reason, issues) => {
    const error = errorOf(await one.query(args))
    expect(error.category).toBe("invalid_input")
    expect(error.issues).toHaveLength(issues.length)
    expect(error.issues).toEqual(
      expect.arrayContaining(issues.map((issue) => expect.objectContaining(issue)))
    )
    if (issues.length === 1) expect(error.reason).toBe(reason)
    expect(error.issues?.map((issue) => issue.reason)).toContain(error.reason)
    for (const issue of error.issues ?? []) {
      expect(issue.expected).not.toBe("")
      expect(issue.received).not.toBe("")
      expect(error.message).toContain(issue.path)
    }
  })

  it("a source is required where there are several, and each cap is the source's own", async () => {
    expect(errorOf(await two.query("select 1"))).toMatchObject({
      reason: "missing_argument",
      issues: [{ path: "source", expected: expect.stringMatching(/shop.*crm/) }]
    })
    expect(errorOf(await two.query({ sql: "select 1", source: "show" }))).toMatchObject({
      reason: "unknown_source",
      issues: [{ path: "source", expected: expect.stringMatching(/shop.*crm/) }]
    })
    for (const [argument, value] of [
      ["maxRows", 11],
      ["timeoutMs", 5001]
    ] as const) {
      const args = { sql: "select 1", [argument]: value }
      expect(errorOf(await two.query({ ...args, source: "shop" }))).toMatchObject({
        reason: "out_of_range",
        source: "shop",
        issues: [{ path: argument, expected: expect.stringContaining(String(value - 1)) }]
      })
      valueOf(await two.query({ ...args, source: "crm" }))
    }
  })

  it("of the other tools, too", async () => {
    expect(errorOf(await one.call("explain", { sql: "select 1", maxRows: 1 }))).toMatchObject({
      reason: "unknown_argument"
    })
    expect(errorOf(await one.call("schema", { nmae: "users" }))).toMatchObject({
      reason: "unknown_argument",
      issues: [{ path: "nmae", expected: expect.stringContaining("name") }]
    })
    expect(errorOf(await one.call("schema", { detail: "all" })).reason).toBe("out_of_range")
  })

  it("an argument in the longest text that is allowed is taken", async () => {
    const { rows } = valueOf(await one.query(`select 1 as a ${" ".repeat(99_986)}`))
    expect(rows).toEqual([{ a: 1 }])
  })
})

describe("failed calls", () => {
  it("say what the engine said, where, and what to do", async () => {
    const error = errorOf(await one.query("select nme from users"))
    expect(error).toMatchObject({
      category: "query_failed",
      reason: "unknown_column",
      message: "no such column: nme",
      retryable: false,
      source: "shop",
      engine: { code: "SQLITE_ERROR" }
    })
  })

  it("a NUL in the statement", async () => {
    expect(errorOf(await one.query("select 1\u0000"))).toMatchObject({
      category: "query_failed",
      reason: "syntax"
    })
  })

  it("text without a statement", async () => {
    for (const sql of [" ", ";", "-- words", "/* more words */"])
      expect(errorOf(await one.query(sql))).toMatchObject({ category: "query_failed", reason: "syntax" })
  })

  it("a timeout, with the server answering meanwhile", async () => {
    const endless = "with recursive c(i) as (values (1) union all select i + 1 from c) select count(*) from c"
    const running = one.query({ sql: endless, timeoutMs: 1500 })
    valueOf(await one.query("select 1"))
    await one.client.ping()
    const error = errorOf(await running)
    expect(error).toMatchObject({ category: "query_failed", reason: "timeout", retryable: false })
    expect(error.hint).toMatch(/timeoutMs/)
  })

  it("each has a correlation id of its own", async () => {
    const ids = await Promise.all(
      Array.from({ length: 20 }, async () => errorOf(await one.query("select nme")).correlationId)
    )
    expect(new Set(ids).size).toBe(20)
  })
})

describe("files that change under the server", () => {
  const at = (name: string) => join(place, name)
  const failing = async (client: TestClient, sql = "select a from t") => errorOf(await client.query(sql))
  const answering = async (client: TestClient, value: unknown) =>
    expect(valueOf(await client.query("select a from t")).rows).toEqual([{ a: value }])
  const table = (name: string, value: number) =>
    fill(at(name), "create table t (a)", `insert into t values (${value})`)

  it("made after a first call failed, taken away, and made again", async () => {
    const client = await connect([at("appears.db")])
    expect(await failing(client)).toMatchObject({ category: "connection_failed", reason: "file_not_found" })
    table("appears.db", 1)
    await answering(client, 1)
    rmSync(at("appears.db"))
    expect(await failing(client)).toMatchObject({ category: "connection_failed", reason: "file_not_found" })
    table("appears.db", 2)
    await answering(client, 2)
  })

  it("replaced by another database", async () => {
    table("replaced.db", 1)
    const client = await connect([at("replaced.db")])
    await Promise.all([answering(client, 1), answering(client, 1), answering(client, 1)])
    table("replacement.db", 2)
    renameSync(at("replacement.db"), at("replaced.db"))
    await Promise.all([answering(client, 2), answering(client, 2), answering(client, 2)])
  })

  it("changed by another process", async () => {
    table("changed.db", 1)
    const client = await connect([at("changed.db")])
    await answering(client, 1)
    fill(at("changed.db"), "update t set a = 2")
    await answering(client, 2)
    fill(at("changed.db"), "drop table t", "create table t (b, a)", "insert into t values (0, 3)")
    await answering(client, 3)
  })

  it("turned into words, cut off, made a folder, and put back", async () => {
    table("spoilt.db", 1)
    cpSync(at("spoilt.db"), at("sound.db"))
    const client = await connect([at("spoilt.db")])
    await answering(client, 1)
    const unreadable = { category: "connection_failed", reason: "file_unreadable", retryable: false }
    const put = (make: () => void) => {
      rmSync(at("spoilt.db"), { recursive: true })
      make()
    }
    put(() => writeFileSync(at("spoilt.db"), "words ".repeat(1000)))
    expect(await failing(client)).toMatchObject(unreadable)
    put(() => mkdirSync(at("spoilt.db")))
    expect(await failing(client)).toMatchObject({ ...unreadable, message: expect.stringContaining("folder") })
    put(() => {
      cpSync(at("sound.db"), at("spoilt.db"))
      truncateSync(at("spoilt.db"), readFileSync(at("sound.db")).length / 2)
    })
    expect(["connection_failed", "query_failed"]).toContain((await failing(client)).category)
    put(() => cpSync(at("sound.db"), at("spoilt.db")))
    await answering(client, 1)
  })

  it("locked by another process: lock_timeout within the call's time, and an answer afterwards", async () => {
    table("locked.db", 1)
    const client = await connect([at("locked.db")])
    for (const _ of ["new", "used"]) {
      const unlock = lock(at("locked.db"))
      try {
        expect(errorOf(await client.query({ sql: "select a from t", timeoutMs: 1000 }))).toMatchObject({
          category: "query_failed",
          reason: "lock_timeout",
          retryable: true,
          engine: { code: "SQLITE_BUSY" }
        })
      } finally {
        unlock()
      }
      await answering(client, 1)
    }
  })

  it("in WAL mode, with a writer at work", async () => {
    fill(at("wal.db"), "pragma journal_mode = wal", "create table t (a)", "insert into t values (1)")
    const client = await connect([at("wal.db")])
    await answering(client, 1)
    fill(at("wal.db"), "update t set a = 2")
    await answering(client, 2)
    chmodSync(at("wal.db"), 0o444)
    await answering(client, 2)
  })
})
