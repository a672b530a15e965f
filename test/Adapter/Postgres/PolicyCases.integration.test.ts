import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { expect, layer } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import pg from "pg"
import * as Postgres from "../../../src/Adapter/Postgres.js"
import type { AdapterService, Parameter } from "../../../src/Adapter.js"
import { admit } from "../../../src/Policy.js"
import * as TestServer from "./TestServer.js"

interface PolicyCase {
  readonly id: string
  readonly sql: string
  readonly params?: ReadonlyArray<Parameter>
  readonly expect: "refused" | "admitted" | "contained"
  readonly refusedAs?: ReadonlyArray<string>
  readonly asSuperuser?: boolean
  readonly requires?: string
  readonly rows?: number
}

type Probes = string | ReadonlyArray<Probes> | { readonly [key: string]: Probes }

interface PolicyFile {
  readonly setup: {
    readonly cluster: ReadonlyArray<string>
    readonly admin: ReadonlyArray<string>
    readonly extensions: Record<string, string>
    readonly login: { readonly name: string; readonly password: string }
    readonly superuserLogin: { readonly name: string; readonly password: string }
  }
  readonly probes: { readonly admin: Probes; readonly session: Probes }
  readonly cases: ReadonlyArray<PolicyCase>
  readonly contained: ReadonlyArray<PolicyCase>
}

const file: PolicyFile = JSON.parse(
  readFileSync(new URL("../../cases/policy.postgres.json", import.meta.url), "utf8")
)

const statementsOf = (probes: Probes): ReadonlyArray<string> =>
  typeof probes === "string" ? [probes] : Object.values(probes).flatMap(statementsOf)

const ask = (adapter: AdapterService, sql: string, params: ReadonlyArray<Parameter> = []) =>
  Effect.flatMap(admit("postgres", { sql, params }), (query) =>
    adapter.query(query, {
      maxRows: 1000,
      maxBytes: 100_000,
      maxCellBytes: 16_384,
      timeoutMs: 10_000,
      format: "columnar"
    })
  )

interface Suite {
  readonly writer: AdapterService
  readonly superuser: AdapterService
  readonly has: ReadonlySet<string>
  /** What a statement may have changed, by probe. */
  readonly picture: Effect.Effect<Record<string, string>>
}
class SuiteTag extends Context.Tag("test/Postgres/PolicySuite")<SuiteTag, Suite>() {}

const suite = Layer.scoped(
  SuiteTag,
  Effect.gen(function* () {
    const { url } = yield* TestServer.ownServer(["-c", "wal_level=logical"])
    const { setup, probes } = file
    const inside = TestServer.withUrl(url, { pathname: "/policy" })
    const has = yield* Effect.promise(async () => {
      await TestServer.runAs(url, [...setup.cluster, "create database policy"])
      const found = new Set<string>()
      const features = { ...setup.extensions, libxml: "select xmlelement(name x)" }
      for (const [name, statement] of Object.entries(features)) {
        await TestServer.runAs(inside, [statement]).then(
          () => found.add(name),
          () => {}
        )
      }
      await TestServer.runAs(inside, setup.admin)
      return found
    })
    const urlOf = ({ name, password }: { readonly name: string; readonly password: string }) =>
      TestServer.withUrl(inside, { username: name, password })

    const client = (connectionString: string) =>
      Effect.acquireRelease(
        Effect.promise(async () => {
          const made = new pg.Client({ connectionString })
          made.on("error", () => {})
          await made.connect()
          return made
        }),
        (made) => Effect.promise(() => made.end())
      )
    const [admin, listener, other] = [
      yield* client(inside),
      yield* client(inside),
      yield* client(urlOf(setup.login))
    ]
    let messages = 0
    listener.on("notification", () => {
      messages++
    })
    yield* Effect.promise(async () => {
      for (const channel of ["jobs", "c", "a", "z"]) await listener.query(`listen ${channel}`)
    })
    const writer = yield* Postgres.make(TestServer.configOf(urlOf(setup.login)))
    const superuser = yield* Postgres.make(TestServer.configOf(urlOf(setup.superuserLogin)))

    const picture = Effect.gen(function* () {
      const seen: Record<string, string> = {}
      const put = (what: string, value: unknown) => {
        seen[what] = createHash("sha1").update(JSON.stringify(value)).digest("hex")
      }
      yield* Effect.promise(async () => {
        for (const sql of [
          ...statementsOf(probes.admin),
          "select f from pg_ls_dir('.') f where f like 'mcpq%'"
        ]) {
          put(sql, (await admin.query({ text: sql, rowMode: "array" })).rows)
        }
        // Notifications arrive before the answer to a later statement.
        await listener.query("select 1")
        put("messages", messages)
        put(
          "another session",
          (await other.query({ text: "select pg_backend_pid()", rowMode: "array" })).rows
        )
      })
      for (const sql of statementsOf(probes.session)) {
        put(`next call: ${sql}`, (yield* ask(writer, sql)).rows)
      }
      return seen
    })
    return { writer, superuser, has, picture: Effect.orDie(picture) }
  })
)

layer(suite, { timeout: 120_000, excludeTestServices: true })("handed policy cases", (it) => {
  for (const entry of [...file.cases, ...file.contained]) {
    it.effect(`${entry.id} ${entry.expect}: ${entry.sql.slice(0, 70)}`, (context) =>
      Effect.gen(function* () {
        const { writer, superuser, has, picture } = yield* SuiteTag
        if (entry.requires !== undefined && !has.has(entry.requires)) context.skip(`needs ${entry.requires}`)
        const before = yield* picture
        const answer = yield* Effect.either(
          ask(entry.asSuperuser ? superuser : writer, entry.sql, entry.params)
        )
        const after = yield* picture
        expect(after).toEqual(before)
        if (entry.expect === "refused") {
          if (Either.isRight(answer)) return expect(answer.right.rows).toBe("refused")
          expect(answer.left._tag).toBeOneOf(["QueryRejected", "QueryFailed"])
          expect(answer.left.reason).toBeOneOf([...(entry.refusedAs ?? [])])
        }
        if (entry.expect === "admitted") {
          if (Either.isLeft(answer)) return expect(answer.left).toBe("admitted")
          if (entry.rows !== undefined) expect(answer.right.rows).toHaveLength(entry.rows)
        }
      })
    )
  }
})
