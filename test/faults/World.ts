/** The engines and files that a campaign runs on: all that are there. */
import { randomBytes } from "node:crypto"
import { copyFileSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import type { Scope } from "effect/Scope"
import ExcelJS from "exceljs"
import Driver from "../../src/Adapter/Sqlite/Driver.js"
import { configFromUrl, Config as SqlServerConfig } from "../../src/Adapter/SqlServer/Config.js"
import { connect } from "../../src/Adapter/SqlServer/Connect.js"
import { execute } from "../../src/Adapter/SqlServer/Execution.js"
import type { AdapterFailure } from "../../src/QueryError.js"
import { ownServer, runAs, withUrl } from "../Adapter/Postgres/TestServer.js"
import * as Proxy from "./Proxy.js"

export type EngineName = "sqlite" | "excel" | "csv" | "postgres" | "mssql"

/** A file that a source reads, and an intact copy of it. */
export interface FileSource {
  readonly id: string
  readonly engine: "sqlite" | "excel" | "csv"
  readonly file: string
  readonly intact: string
}

export interface NetworkSource {
  readonly id: string
  readonly engine: "postgres" | "mssql"
  readonly proxy: Proxy.Proxy
  /** Goes through the proxy. */
  readonly url: string
  /** The server's sessions, as the engine counts them. */
  readonly sessions: Effect.Effect<number>
  /** Ends all of them in the engine. */
  readonly endSessions: Effect.Effect<void>
}

export interface PostgresSource extends NetworkSource {
  /** The administrator's, past the proxy. */
  readonly admin: string
  readonly login: string
}

export interface World {
  readonly folder: string
  readonly files: ReadonlyArray<FileSource>
  readonly networks: ReadonlyArray<NetworkSource>
  readonly postgres: PostgresSource
  /** Of the embedded PostgreSQL. */
  readonly restartPostgres: (mode: "fast" | "immediate") => Effect.Effect<void>
  /** Texts that no answer and no log may hold. */
  readonly secrets: ReadonlyArray<string>
  /** Texts that no answer may hold. */
  readonly confidential: ReadonlyArray<string>
}

/** Puts the intact file back under its name, as another file. */
export const restore = ({ file, intact }: FileSource) =>
  Effect.sync(() => {
    copyFileSync(intact, `${file}.new`)
    renameSync(`${file}.new`, file)
  })

export const rows = { sqlite: 20_000, excel: 2000, csv: 3000, postgres: 20_000, mssql: 2000 } as const
/** A few sessions, so that they can run out. */
const maxConnections = 24

const writeDatabase = (file: string) => {
  const database = new Driver(file)
  database.exec(`create table items (id integer primary key, name text not null, price real, note text);
    with recursive r(i) as (select 1 union all select i + 1 from r where i < ${rows.sqlite})
    insert into items select i, 'item ' || i, i / 100.0, hex(randomblob(40)) from r;
    create view cheap as select * from items where price < 10`)
  database.close()
}

const writeWorkbook = async (file: string) => {
  const book = new ExcelJS.Workbook()
  const sheet = book.addWorksheet("items")
  sheet.addRow(["id", "name", "price"])
  for (let id = 1; id <= rows.excel; id++) sheet.addRow([id, `item ${id}`, id / 100])
  await book.xlsx.writeFile(file)
}

const writeText = (file: string) =>
  writeFileSync(
    file,
    [
      "id,name,price",
      ...Array.from({ length: rows.csv }, (_, at) => `${at + 1},item ${at + 1},${(at + 1) / 100}`)
    ]
      .join("\n")
      .concat("\n")
  )

/** Has what URLs, shells and JSON escape. */
const password = () => `p@ss/w"rd:${randomBytes(9).toString("hex")}`

const quote = (text: string) => `'${text.replaceAll("'", "''")}'`

const postgres = Effect.gen(function* () {
  const server = yield* ownServer(["-c", `max_connections=${maxConnections}`])
  const secret = password()
  yield* Effect.promise(() =>
    runAs(server.url, [
      `create role faults_reader login password ${quote(secret)}`,
      "create table items (id integer primary key, name text not null, price numeric(10,2), note text)",
      `insert into items select i, 'item ' || i, i / 100.0, md5(i::text) from generate_series(1, ${rows.postgres}) i`,
      "grant select on items to faults_reader",
      "analyze items"
    ])
  )
  const proxy = yield* Proxy.make({ host: "127.0.0.1", port: server.port })
  const url = withUrl(server.url, {
    username: "faults_reader",
    password: encodeURIComponent(secret),
    port: String(proxy.port)
  })
  const login = "faults_reader"
  const asAdmin = (statement: string) =>
    Effect.promise(() => runAs(server.url, [statement]).catch((): ReadonlyArray<never> => []))
  const source: PostgresSource = {
    id: "pg",
    engine: "postgres",
    proxy,
    url,
    admin: server.url,
    login,
    sessions: Effect.map(
      asAdmin(`select count(*)::int from pg_stat_activity where usename = '${login}'`),
      ([rows]) => Number(rows?.[0]?.[0] ?? 0)
    ),
    endSessions: Effect.asVoid(
      asAdmin(`select pg_terminate_backend(pid) from pg_stat_activity where usename = '${login}'`)
    )
  }
  const restart = (mode: "fast" | "immediate") =>
    Effect.promise(async () => {
      await server.stop(mode)
      await server.start()
    })
  const secrets = [secret, encodeURIComponent(secret), new URL(server.url).password]
  return { source, restart, secrets }
})

const given = process.env["MCP_QUERY_TEST_MSSQL_URL"]

/** A batch on a connection of its own, and the first cells of its rows. */
const runBatch = (
  config: SqlServerConfig,
  sql: string
): Effect.Effect<ReadonlyArray<unknown>, AdapterFailure> =>
  Effect.acquireUseRelease(
    connect(config),
    (wire) => {
      const cells: Array<unknown> = []
      const row = ([cell]: ReadonlyArray<unknown>) => {
        cells.push(cell)
        return true
      }
      return Effect.as(execute(wire, { sql, kind: "batch", sink: { columns: () => {}, row } }), cells)
    },
    (wire) => Effect.sync(() => wire.close())
  )

/** A database of our own on a server of somebody's, through a proxy of ours. */
const sqlServer = (url: string, token: string) =>
  Effect.gen(function* () {
    const database = `mcpq_faults_${token}`
    const admin = Either.getOrThrow(configFromUrl(Redacted.make(url)))
    const setUp = (sql: string, config = admin) => Effect.orDie(runBatch(config, sql))
    yield* Effect.acquireRelease(setUp(`create database ${database}`), () =>
      // A statement that the engine did not stop keeps the database until its own timeout.
      runBatch(admin, `drop database ${database}`).pipe(
        Effect.retry(Schedule.intersect(Schedule.spaced("500 millis"), Schedule.recurs(60))),
        Effect.ignoreLogged
      )
    )
    const inDatabase = new SqlServerConfig({ ...admin, database })
    yield* setUp(
      "create table items (id int primary key, name varchar(50) not null, price decimal(10,2), note varchar(50))",
      inDatabase
    )
    yield* setUp(
      `with r(i) as (select 1 union all select i + 1 from r where i < ${rows.mssql})
      insert into items select i, concat('item ', i), i / 100.0, 'note' from r option (maxrecursion 0)`,
      inDatabase
    )
    const there = new URL(url)
    const port = Number(there.port || 1433)
    const proxy = yield* Proxy.make({ host: there.hostname, port })
    const through = new URL(url)
    through.hostname = "127.0.0.1"
    through.port = String(proxy.port)
    through.pathname = `/${database}`
    through.searchParams.set("applicationName", database)
    const mine = `from sys.dm_exec_sessions where program_name = '${database}'`
    const asAdmin = (sql: string) =>
      Effect.orElseSucceed(runBatch(admin, sql), (): ReadonlyArray<unknown> => [])
    const source: NetworkSource = {
      id: "erp",
      engine: "mssql",
      proxy,
      url: through.href,
      sessions: Effect.map(asAdmin(`select count(*) ${mine}`), ([count]) => Number(count ?? 0)),
      endSessions: Effect.flatMap(asAdmin(`select session_id ${mine}`), (ids) =>
        Effect.forEach(ids, (id) => asAdmin(`kill ${Number(id)}`), { discard: true })
      )
    }
    const secret = decodeURIComponent(there.password)
    return { source, secrets: secret.length > 5 ? [secret] : [] }
  })

export const make: Effect.Effect<World, never, Scope> = Effect.gen(function* () {
  const token = randomBytes(6).toString("hex")
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), `mcp-query-faults-${token}-`))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )
  const file = (id: string, engine: FileSource["engine"], name: string): FileSource => ({
    id,
    engine,
    file: join(folder, name),
    intact: join(folder, "intact", name)
  })
  const files = [
    file("shop", "sqlite", "shop.db"),
    file("book", "excel", "book.xlsx"),
    file("items", "csv", "items.csv")
  ]
  yield* Effect.promise(async () => {
    mkdirSync(join(folder, "intact"))
    writeDatabase(join(folder, "intact", "shop.db"))
    await writeWorkbook(join(folder, "intact", "book.xlsx"))
    writeText(join(folder, "intact", "items.csv"))
  })
  const pg = yield* postgres
  const mssql = given === undefined ? undefined : yield* sqlServer(given, token)
  return {
    folder,
    files,
    postgres: pg.source,
    networks: [pg.source, ...(mssql === undefined ? [] : [mssql.source])],
    restartPostgres: pg.restart,
    secrets: [...pg.secrets, ...(mssql?.secrets ?? [])],
    confidential: [token, "faults_reader", "127.0.0.1"]
  }
})
