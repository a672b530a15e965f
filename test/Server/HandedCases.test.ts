/** The verified SQLite cases, through the running server and the SDK's client. */
import { createHash } from "node:crypto"
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  truncateSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { beforeAll, describe, expect, it } from "vitest"
import Driver from "../../src/Adapter/Sqlite/Driver.js"
import connectionCases from "../cases/connection.sqlite.json" with { type: "json" }
import { type ErrorAnswer, errorOf, valueOf } from "../support/Answer.js"
import { connect, type TestClient } from "../support/Client.js"
import { fill, folder, lock } from "../support/Folder.js"
import { withoutPrivileges } from "../support/WithoutPrivileges.js"

interface Entry {
  readonly id: string
  readonly sql: string
  readonly params?: ReadonlyArray<unknown>
  readonly setup?: ReadonlyArray<string>
  readonly limits?: Record<string, number>
  readonly fresh?: boolean
  readonly maxDurationMs?: number
}

interface ValueEntry extends Entry {
  readonly columns: ReadonlyArray<string>
  readonly columnTypes: ReadonlyArray<string | null>
  readonly rows?: ReadonlyArray<ReadonlyArray<unknown>>
  readonly records?: ReadonlyArray<Record<string, unknown>>
  readonly rowCountRange?: readonly [number, number]
  readonly truncated?: boolean
  readonly truncatedBy?: string
  readonly truncatedCells?: ReadonlyArray<unknown>
  readonly notesMatch?: string
}

interface ErrorEntry extends Entry {
  readonly category: string
  readonly reason: string
  readonly reasonAlso?: ReadonlyArray<string>
  readonly engineCode?: string
  readonly engineCodeAlso?: ReadonlyArray<string>
  readonly messageMatches?: string
  readonly how?: string
}

interface PolicyEntry extends Entry {
  readonly expect: "refused" | "admitted" | "contained"
  readonly refusedAs?: ReadonlyArray<string>
  readonly rows?: number
}

interface PolicyFile {
  readonly setup: { readonly admin: ReadonlyArray<string> }
  readonly probes: { readonly session: ReadonlyArray<string> }
  readonly cases: ReadonlyArray<PolicyEntry>
  readonly contained: ReadonlyArray<PolicyEntry>
}

const read = <A>(name: string): A =>
  JSON.parse(readFileSync(new URL(`../cases/${name}.sqlite.json`, import.meta.url), "utf8"))

const place = folder()
const title = ({ id, sql }: Entry) => `${id} ${sql.slice(0, 70)}`

/**
 * One server for all entries of a kind: entries with limits of their own ask a source of their own, over the same
 * file unless they want a new one.
 */
const serverFor = async (name: string, entries: ReadonlyArray<Entry>) => {
  const shared = fill(join(place, `${name}.db`), "create table mcpv_first (a integer)")
  const sources: Record<string, object> = { plain: { engine: "sqlite", file: shared } }
  const sourceOf = ({ fresh, id, limits }: Entry) => {
    const key = fresh ? id : limits === undefined ? "plain" : JSON.stringify(limits)
    return key.toLowerCase().replace(/[^a-z0-9]+/g, "_")
  }
  const fileOf = ({ fresh, id }: Entry) => (fresh ? join(place, `${id}.db`) : shared)
  for (const entry of entries) {
    sources[sourceOf(entry)] ??= {
      engine: "sqlite",
      file: fileOf(entry),
      ...(entry.limits === undefined ? {} : { limits: entry.limits })
    }
  }
  const config = join(place, `${name}.json`)
  writeFileSync(config, JSON.stringify({ sources }))
  const client = await connect(["--config", config])
  return {
    shared,
    arrange: (entry: Entry) => void fill(fileOf(entry), ...(entry.setup ?? [])),
    ask: (entry: Entry, more: object = {}) =>
      client.query({
        sql: entry.sql,
        source: sourceOf(entry),
        format: "columnar",
        ...(entry.params === undefined ? {} : { params: entry.params }),
        ...more
      })
  }
}

type Server = Awaited<ReturnType<typeof serverFor>>

const within = async <A>(bound: number | undefined, answer: Promise<A>): Promise<A> => {
  const from = performance.now()
  const result = await answer
  if (bound !== undefined) expect(performance.now() - from).toBeLessThan(bound)
  return result
}

describe("values", () => {
  const entries = read<ReadonlyArray<ValueEntry>>("values")
  let server: Server
  beforeAll(async () => {
    server = await serverFor("values", entries)
  })

  it.each(entries.map((entry) => [title(entry), entry] as const))("%s", async (_, entry) => {
    server.arrange(entry)
    const value = valueOf(await within(entry.maxDurationMs, server.ask(entry)))
    expect(value.columns).toEqual(entry.columns)
    expect(value.columnTypes).toEqual(entry.columnTypes)
    expect(value.rowCount).toBe(value.rows.length)
    if (entry.rows !== undefined) expect(value.rows).toEqual(entry.rows)
    if (entry.rowCountRange !== undefined) {
      expect(value.rowCount).toBeGreaterThanOrEqual(entry.rowCountRange[0])
      expect(value.rowCount).toBeLessThanOrEqual(entry.rowCountRange[1])
    }
    expect(value.truncated).toBe(entry.truncated ?? false)
    expect(value.truncatedBy).toBe(entry.truncatedBy)
    expect(value.truncatedCells).toEqual(entry.truncatedCells)
    // What was cut says how to get the rest; nothing else is said unless the case asks for it.
    const advice = [value.truncated, value.truncatedCells !== undefined].filter((cut) => cut).length
    if (entry.notesMatch === undefined) expect(value.notes ?? []).toHaveLength(advice)
    else expect(value.notes).toContainEqual(expect.stringMatching(new RegExp(entry.notesMatch)))

    const { rows: records } = valueOf(await server.ask(entry, { format: "records" }))
    const expected =
      entry.records ??
      value.rows.map((row) =>
        Object.fromEntries(value.columns.map((column, index) => [column, (row as Array<unknown>)[index]]))
      )
    if (entry.rowCountRange === undefined)
      // As text: toEqual does not see an own key called __proto__.
      expect(records.map((row) => Object.entries(row as object).sort())).toEqual(
        expected.map((row) => Object.entries(row).sort())
      )
  })
})

describe("errors", () => {
  const entries = read<ReadonlyArray<ErrorEntry>>("errors")
  let server: Server
  beforeAll(async () => {
    server = await serverFor("errors", entries)
  })

  it.each(entries.map((entry) => [title(entry), entry] as const))("%s", async (_, entry) => {
    server.arrange(entry)
    const unlock = entry.how?.includes("begin exclusive") ? lock(server.shared) : () => {}
    let error: ErrorAnswer
    try {
      const more = entry.how === undefined ? {} : { timeoutMs: 1500 }
      error = errorOf(await within(entry.maxDurationMs, server.ask(entry, more)))
    } finally {
      unlock()
    }
    expect(error.category).toBe(entry.category)
    expect([entry.reason, ...(entry.reasonAlso ?? [])]).toContain(error.reason)
    if (entry.engineCode !== undefined && error.category === "query_failed")
      expect([entry.engineCode, ...(entry.engineCodeAlso ?? [])]).toContain(error.engine?.code)
    if (entry.messageMatches !== undefined) expect(error.message).toMatch(new RegExp(entry.messageMatches))
    const again = valueOf(await server.ask({ id: "", sql: "select 1" }))
    expect(again.rows).toEqual([[1]])
  })
})

describe("policy", () => {
  const file = read<PolicyFile>("policy")
  const data = mkdir("policy-data")
  const cwd = mkdir("policy-cwd")
  const database = join(data, "policy.db")
  let client: TestClient
  let before: unknown

  /** Everything that a statement may have changed: the file, its folder, the server's folder, later calls, locks. */
  const picture = async () => {
    const session: Array<unknown> = []
    // Statements run in several processes in turn: each is asked everything.
    for (const sql of [...file.probes.session, "select 1", ...file.probes.session, "select 2"])
      session.push([sql, valueOf(await client.query({ sql, format: "columnar" })).rows])
    const other = new Driver(database, { timeout: 0 })
    other.exec("begin immediate; rollback")
    other.close()
    return {
      bytes: createHash("sha256").update(readFileSync(database)).digest("hex"),
      files: [...readdirSync(data), ...readdirSync(cwd)],
      session
    }
  }

  beforeAll(async () => {
    fill(database, ...file.setup.admin)
    client = await connect([`policy=${database}`], { cwd })
    before = await picture()
  })

  const refused = (id: string, sql: string): PolicyEntry => ({
    id,
    sql,
    expect: "refused",
    refusedAs: ["read_only", "statement_type", "function_denied"]
  })
  /** Beyond the handed ones: what acts while it is merely prepared, and names in other clothes. */
  const more = [
    refused("explained setting", "explain pragma case_sensitive_like = 1"),
    refused("explained setting with a plan", "explain query plan pragma foreign_keys(0)"),
    refused("explained limit", "explain/**/pragma hard_heap_limit = 100000000"),
    refused("explained attachment", "explain attach ':memory:' as x"),
    refused("a table in quotes of a string", "select * from 'pragma_optimize'"),
    refused("a function in brackets", "select [load_extension]('x')"),
    refused("a setting through a hidden column", "select * from pragma_journal_mode where arg = 'wal'")
  ]

  it.each(
    [...file.cases, ...file.contained, ...more].map(
      (entry) => [`${entry.expect}: ${title(entry)}`, entry] as const
    )
  )("%s", async (_, entry) => {
    const { params, sql } = entry
    const answer = await client.query({ sql, ...(params === undefined ? {} : { params }) })
    expect(await picture()).toEqual(before)
    if (entry.expect === "refused") {
      const error = errorOf(answer)
      expect(["query_rejected", "query_failed"]).toContain(error.category)
      expect(entry.refusedAs).toContain(error.reason)
    }
    if (entry.expect === "admitted") {
      const { rowCount } = valueOf(answer)
      if (entry.rows !== undefined) expect(rowCount).toBe(entry.rows)
    }
  })
})

function mkdir(name: string): string {
  const path = join(place, name)
  mkdirSync(path)
  return path
}

describe("connections", () => {
  const prefix = withoutPrivileges()
  const home = mkdir("connections")
  const sound = fill(
    join(home, "sound.db"),
    "create table t (a)",
    "with recursive c(i) as (values (1) union all select i + 1 from c where i < 2000) insert into t select hex(randomblob(50)) from c"
  )
  const at = (name: string) => join(home, name)

  /** What each entry's file is. */
  const arrange: Record<string, () => string> = {
    "sq-c-001": () => at("missing.db"),
    "sq-c-002": () => join(home, "nowhere", "missing.db"),
    "sq-c-003": () => mkdir("connections/folder.db"),
    "sq-c-004": () => {
      writeFileSync(at("text.db"), "These are words and no database.\n".repeat(100))
      return at("text.db")
    },
    "sq-c-005": () => {
      cpSync(sound, at("cut.db"))
      truncateSync(at("cut.db"), Math.floor(readFileSync(sound).length / 2))
      return at("cut.db")
    },
    "sq-c-006": () => {
      cpSync(sound, at("forbidden.db"))
      chmodSync(at("forbidden.db"), 0)
      return at("forbidden.db")
    },
    "sq-c-007": () => {
      // An encrypted file is random from its first byte.
      const blocks = Array.from({ length: 512 }, (_, i) => createHash("sha256").update(`${i}`).digest())
      writeFileSync(at("encrypted.db"), Buffer.concat(blocks))
      return at("encrypted.db")
    },
    "sq-c-008": () => {
      writeFileSync(at("empty.db"), "")
      return at("empty.db")
    },
    "sq-c-009": () => {
      const shut = mkdir("connections/shut")
      fill(
        join(shut, "wal.db"),
        "pragma journal_mode = wal",
        "create table t (a)",
        "insert into t values (7)"
      )
      for (const file of readdirSync(shut)) chmodSync(join(shut, file), 0o444)
      chmodSync(shut, 0o555)
      return join(shut, "wal.db")
    }
  }

  it("binds all of them", () => expect(Object.keys(arrange)).toEqual(connectionCases.map(({ id }) => id)))

  describe.each(connectionCases.map((entry) => [`${entry.id} ${entry.how}`, entry] as const))(
    "%s",
    (_, entry) => {
      it(entry.category === "none" ? "is read" : `is ${entry.reason}`, async (context) => {
        const needed = ["sq-c-006", "sq-c-009"].includes(entry.id)
        if (needed && prefix === undefined) context.skip("nothing here takes root's privileges away")
        const file = arrange[entry.id]?.() ?? ""
        const existed = existsSync(file)
        const client = await connect([`db=${file}`], needed ? { prefix: prefix ?? [] } : {})
        for (const sql of ["select count(*) from sqlite_schema", "select 1"]) {
          const answer = await client.query(sql)
          if (entry.category === "none") valueOf(answer)
          else {
            const { category, message, reason } = errorOf(answer)
            expect({ category, reason }).toEqual({ category: entry.category, reason: entry.reason })
            expect(message).not.toContain(home)
          }
        }
        if (entry.id === "sq-c-009")
          expect(valueOf(await client.query("select a from t")).rows).toEqual([{ a: 7 }])
        expect(existsSync(file)).toBe(existed)
      })
    }
  )
})
