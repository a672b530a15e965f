/** What the client asks, and what may come of it when nothing fails and when anything may. */
import type { Random } from "./Random.js"
import { type EngineName, rows } from "./World.js"

export interface Target {
  readonly id: string
  readonly engine: EngineName
}

/** An outcome as `succeeded` or `category/reason`; a category alone stands for all of its reasons. */
export type Outcome = string

export interface Call {
  /** For the counts. */
  readonly kind: string
  readonly tool: string
  readonly arguments: unknown
  /** The source's engine; undefined where no engine is asked. */
  readonly target: Target | undefined
  readonly timeoutMs: number
  /** What may come when nothing fails. */
  readonly expected: ReadonlyArray<Outcome>
  /** What a successful answer must hold. */
  readonly check?: (value: Record<string, unknown>) => string | undefined
  /** The answer is large. */
  readonly heavy?: true
}

/** What any call on an engine may come to while faults are injected. */
export const faultOutcomes: ReadonlyArray<Outcome> = [
  "connection_failed",
  "query_rejected/overloaded",
  "query_failed/timeout",
  "query_failed/lock_timeout",
  "query_failed/resource_limit"
]

/** The cap that the campaign's configuration sets. */
export const capMs = 4000

const firstRow = (value: Record<string, unknown>): unknown => {
  const all = value["rows"]
  const row: unknown = Array.isArray(all) ? all[0] : undefined
  return Array.isArray(row) ? row : typeof row === "object" && row !== null ? Object.values(row) : undefined
}

const sameRow =
  (expected: ReadonlyArray<unknown>) =>
  (value: Record<string, unknown>): string | undefined => {
    const row = JSON.stringify(firstRow(value))
    return row === JSON.stringify(expected) ? undefined : `the row is ${row}, not ${JSON.stringify(expected)}`
  }

const truncated = (value: Record<string, unknown>): string | undefined =>
  value["truncated"] === true ? undefined : "it is not truncated"

interface Dialect {
  readonly items: string
  readonly placeholder: (position: number) => string
  readonly literal: (text: string) => string
  readonly text: string
  readonly runaway: string
  readonly endless: string
  readonly large: string
  readonly hungry: ReadonlyArray<string>
  readonly write: string
  readonly rows: number
}

const counting = (recursive: string, most = "") =>
  `with ${recursive} r(i) as (select 1 union all select i + 1 from r${most})`

const sqliteDialect = (count: number): Dialect => ({
  items: "items",
  placeholder: (position) => `?${position}`,
  literal: (text) => `'${text}'`,
  text: "cast(? as text)",
  runaway: `${counting("recursive")} select count(*) from r`,
  endless: `${counting("recursive")} select i from r`,
  large: `${counting("recursive")} select i, hex(randomblob(300)) from r`,
  hungry: [
    "select group_concat(hex(zeroblob(3000000))) from items",
    "select length(hex(zeroblob(600000000)))",
    "select a.name, b.name from items a, items b, items c order by a.price * b.price * c.price, a.name"
  ],
  write: "delete from items",
  rows: count
})

const dialects: Record<EngineName, Dialect> = {
  sqlite: sqliteDialect(rows.sqlite),
  excel: sqliteDialect(rows.excel),
  csv: sqliteDialect(rows.csv),
  postgres: {
    items: "items",
    placeholder: (position) => `$${position}`,
    literal: (text) => `'${text}'::text`,
    text: "$1::text",
    runaway: "select count(*) from items a, items b, items c, pg_sleep(0.01)",
    endless: `${counting("recursive")} select i from r`,
    large: "select i, repeat(md5(i::text), 20) from generate_series(1, 100000) i",
    hungry: [
      "select repeat('x', 200000000)",
      "select string_agg(repeat(name, 2000), '') from items",
      "select a.name from items a, items b, items c order by a.price * b.price * c.price"
    ],
    write: "delete from items",
    rows: rows.postgres
  },
  mssql: {
    items: "items",
    placeholder: (position) => `@p${position}`,
    literal: (text) => `cast('${text}' as nvarchar(100))`,
    text: "cast(@p1 as nvarchar(100))",
    runaway: `${counting("", " where i < 2000000000")} select count(*) from r option (maxrecursion 0)`,
    endless: `${counting("", " where i < 2000000000")} select i from r option (maxrecursion 0)`,
    large: `${counting("", " where i < 20000")} select i, replicate('x', 600) as x from r option (maxrecursion 0)`,
    hungry: ["select replicate(cast('x' as nvarchar(max)), 20000000) as x"],
    write: "delete from items",
    rows: rows.mssql
  }
}

const onSource = (
  kind: string,
  target: Target,
  several: boolean,
  sql: string,
  more: {
    readonly arguments?: Record<string, unknown>
    readonly expected?: ReadonlyArray<Outcome>
    readonly check?: Call["check"]
    readonly heavy?: true
    readonly tool?: string
  } = {}
): Call => {
  const args = { sql, ...(several ? { source: target.id } : {}), ...more.arguments }
  const timeoutMs = more.arguments?.["timeoutMs"]
  return {
    kind,
    tool: more.tool ?? "query",
    arguments: args,
    target,
    timeoutMs: typeof timeoutMs === "number" ? timeoutMs : capMs,
    expected: more.expected ?? ["succeeded"],
    ...(more.check === undefined ? {} : { check: more.check }),
    ...(more.heavy === undefined ? {} : { heavy: more.heavy })
  }
}

const noEngine = (kind: string, args: unknown, expected: ReadonlyArray<Outcome>, tool = "query"): Call => ({
  kind,
  tool,
  arguments: args,
  target: undefined,
  timeoutMs: capMs,
  expected
})

/** A quick call whose answer can be no other call's. */
export const quick = (target: Target, several: boolean, nonce: string): Call =>
  onSource("quick", target, several, `select ${dialects[target.engine].literal(nonce)} as n`, {
    check: sameRow([nonce])
  })

/** A call at random. */
export const draw = (
  random: Random,
  targets: readonly [Target, ...ReadonlyArray<Target>],
  nonce: string
): Call => {
  const target = random.pick(targets)
  const several = targets.length > 1
  const dialect = dialects[target.engine]
  const columnar = random.chance(0.5) ? { format: "columnar" } : {}
  const on = (kind: string, sql: string, more: Parameters<typeof onSource>[4] = {}) =>
    onSource(kind, target, several, sql, { ...more, arguments: { ...columnar, ...more.arguments } })
  const source = several ? { source: target.id } : {}
  const short = { timeoutMs: random.int(60, 700) }
  return random.weighted<() => Call>([
    [24, () => quick(target, several, nonce)],
    [
      14,
      () =>
        on("parameters", `select ${dialect.text} as n`, {
          arguments: { params: [nonce] },
          check: sameRow([nonce])
        })
    ],
    [
      10,
      () => {
        const first = random.int(1, Math.max(1, dialect.rows - 50))
        return on(
          "table",
          `select id, name from ${dialect.items} where id >= ${dialect.placeholder(1)} and id < ${dialect.placeholder(2)} order by id`,
          {
            arguments: { params: [first, first + 20] },
            check: sameRow([first, `item ${first}`])
          }
        )
      }
    ],
    [6, () => on("endless", dialect.endless, { check: truncated })],
    [6, () => on("large", dialect.large, { check: truncated, heavy: true })],
    [4, () => on("runaway", dialect.runaway, { arguments: short, expected: ["query_failed/timeout"] })],
    [
      1,
      () =>
        on("hungry", random.pick([dialect.runaway, ...dialect.hungry]), {
          arguments: { timeoutMs: random.int(500, 2500) },
          expected: ["succeeded", "query_failed/timeout", "query_failed/resource_limit"]
        })
    ],
    [
      3,
      () =>
        on("syntax", "select from where", {
          expected: ["query_failed/syntax", "query_rejected/unverifiable"]
        })
    ],
    [
      3,
      () => on("unknown_table", "select * from no_such_table", { expected: ["query_failed/unknown_table"] })
    ],
    [
      3,
      () =>
        on("unknown_column", `select no_such_column from ${dialect.items}`, {
          expected: ["query_failed/unknown_column"]
        })
    ],
    [3, () => on("write", dialect.write, { expected: ["query_rejected"] })],
    [3, () => on("two statements", "select 1 as a; select 2 as b", { expected: ["query_rejected"] })],
    [
      4,
      () =>
        onSource("explain", target, several, `select * from ${dialect.items} where id = 7`, {
          tool: "explain"
        })
    ],
    [
      4,
      () => ({
        ...noEngine(
          "schema",
          { ...source, ...(random.chance(0.5) ? { name: "items" } : {}) },
          ["succeeded"],
          "schema"
        ),
        target
      })
    ],
    [2, () => noEngine("missing sql", { ...source }, ["invalid_input/missing_argument"])],
    [2, () => noEngine("wrong type", { sql: 7, ...source }, ["invalid_input/wrong_type"])],
    [
      2,
      () =>
        noEngine("unknown argument", { sql: "select 1", ...source, limit: 7 }, [
          "invalid_input/unknown_argument"
        ])
    ],
    [
      2,
      () =>
        noEngine("unknown source", { sql: "select 1", source: "nowhere" }, ["invalid_input/unknown_source"])
    ],
    [
      2,
      () =>
        noEngine("out of range", { sql: "select 1", ...source, maxRows: 0, timeoutMs: 10_000_000 }, [
          "invalid_input/out_of_range"
        ])
    ]
  ])()
}
