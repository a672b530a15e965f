import { execFileSync } from "node:child_process"
import {
  appendFileSync,
  chownSync,
  copyFileSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, layer } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type { Config } from "../../../src/Adapter/Postgres/Config.js"
import * as Postgres from "../../../src/Adapter/Postgres.js"
import { ask, rowsOf } from "./Query.js"
import * as TestServer from "./TestServer.js"

const openssl = (folder: string, ...args: ReadonlyArray<string>) =>
  execFileSync("openssl", [...args], { cwd: folder, stdio: "ignore" })

/** A certificate authority `name`, and what it signs: `NAME.pem` and `NAME.key`. */
const authority = (folder: string, name: string) => {
  openssl(
    folder,
    "req",
    "-x509",
    "-newkey",
    "rsa:2048",
    "-nodes",
    "-days",
    "2",
    "-subj",
    `/CN=${name}`,
    "-keyout",
    `${name}.key`,
    "-out",
    `${name}.pem`
  )
  return (subject: string, file: string, names: string) => {
    writeFileSync(join(folder, `${file}.ext`), `subjectAltName=${names}\n`)
    openssl(
      folder,
      "req",
      "-newkey",
      "rsa:2048",
      "-nodes",
      "-subj",
      `/CN=${subject}`,
      "-keyout",
      `${file}.key`,
      "-out",
      `${file}.csr`
    )
    openssl(
      folder,
      "x509",
      "-req",
      "-in",
      `${file}.csr`,
      "-CA",
      `${name}.pem`,
      "-CAkey",
      `${name}.key`,
      "-CAcreateserial",
      "-days",
      "2",
      "-extfile",
      `${file}.ext`,
      "-out",
      `${file}.pem`
    )
  }
}

interface Secure {
  readonly url: string
  readonly plain: string
  readonly certificates: string
}
class SecureTag extends Context.Tag("test/Postgres/Secure")<SecureTag, Secure>() {}

/** A server with TLS for `localhost`, logins that must or must not use it, and one that needs a client certificate. */
const secure = Layer.scoped(
  SecureTag,
  Effect.gen(function* () {
    const certificates = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "mcp-query-certificates-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
    )
    const sign = authority(certificates, "ca")
    authority(certificates, "other")
    sign("localhost", "server", "DNS:localhost")
    sign("by_certificate", "client", "DNS:client")
    const server = yield* TestServer.ownServer(["-c", "ssl=on", "-c", "ssl_ca_file=ca.pem"], (folder) => {
      const { uid, gid } = statSync(folder)
      for (const [from, to] of [
        ["server.pem", "server.crt"],
        ["server.key", "server.key"],
        ["ca.pem", "ca.pem"]
      ] as const) {
        copyFileSync(join(certificates, from), join(folder, to))
        execFileSync("chmod", ["600", join(folder, to)])
        chownSync(join(folder, to), uid, gid)
      }
      const hba = join(folder, "pg_hba.conf")
      const rest = readFileSync(hba, "utf8")
      writeFileSync(
        hba,
        [
          "hostssl all only_tls all scram-sha-256",
          "hostnossl all only_tls all reject",
          "hostnossl all only_plain all scram-sha-256",
          "hostssl all only_plain all reject",
          "hostssl all by_certificate all cert",
          "host all shut_out all reject",
          ""
        ].join("\n")
      )
      appendFileSync(hba, rest)
    })
    const password = TestServer.secret()
    yield* Effect.promise(() =>
      TestServer.runAs(
        server.url,
        ["only_tls", "only_plain", "by_certificate", "shut_out", "anyone"].map(
          (role) => `create role ${role} login password '${password}'`
        )
      )
    )
    const url = TestServer.withUrl(server.url, { username: "anyone", password })
    return { url, plain: url, certificates }
  })
)

layer(secure, { timeout: 120_000, excludeTestServices: true })("TLS", (it) => {
  const connect = (more: Partial<Config> & { readonly as?: string; readonly host?: string }) =>
    Effect.gen(function* () {
      const { url } = yield* SecureTag
      const { as = "anyone", host = "localhost", ...config } = more
      const to = TestServer.withUrl(url, { username: as, hostname: host })
      return yield* Postgres.make(TestServer.configOf(to, config))
    })
  const encrypted = (more: Parameters<typeof connect>[0]) =>
    Effect.flatMap(connect(more), (adapter) =>
      Effect.map(
        rowsOf(adapter, "select ssl from pg_stat_ssl where pid = pg_backend_pid()"),
        ([row]) => row?.[0]
      )
    )
  const refusal = (more: Parameters<typeof connect>[0]) =>
    Effect.flatMap(connect(more), (adapter) =>
      Effect.map(Effect.flip(ask(adapter, "select 1")), ({ reason }) => reason)
    )

  it.scoped("each mode takes what libpq takes", () =>
    Effect.gen(function* () {
      const { certificates } = yield* SecureTag
      const ca = join(certificates, "ca.pem")
      expect(yield* encrypted({ sslmode: "disable" })).toBe(false)
      expect(yield* encrypted({ sslmode: "allow" })).toBe(false)
      expect(yield* encrypted({ sslmode: "prefer" })).toBe(true)
      expect(yield* encrypted({ sslmode: "require" })).toBe(true)
      expect(yield* encrypted({ sslmode: "verify-ca", ca })).toBe(true)
      expect(yield* encrypted({ sslmode: "verify-full", ca })).toBe(true)
      expect(yield* encrypted({ sslmode: "verify-full", ca: readFileSync(ca, "utf8") })).toBe(true)
      expect(yield* encrypted({ sslmode: "require", ca, sslNegotiation: "direct" })).toBe(true)
      // The certificate is for localhost.
      expect(yield* encrypted({ sslmode: "verify-ca", ca, host: "127.0.0.1" })).toBe(true)
    })
  )

  it.scoped("a login that only one way of connecting is open to", () =>
    Effect.gen(function* () {
      expect(yield* encrypted({ sslmode: "allow", as: "only_tls" })).toBe(true)
      expect(yield* encrypted({ sslmode: "prefer", as: "only_plain" })).toBe(false)
      expect(yield* refusal({ sslmode: "disable", as: "only_tls" })).toBe("authentication")
      expect(yield* refusal({ sslmode: "require", as: "only_plain" })).toBe("authentication")
      expect(yield* refusal({ sslmode: "prefer", as: "shut_out" })).toBe("authentication")
    })
  )

  it.scoped("a wrong authority and a wrong name are refused, where they are to be verified", () =>
    Effect.gen(function* () {
      const { certificates } = yield* SecureTag
      const [ca, other] = [join(certificates, "ca.pem"), join(certificates, "other.pem")]
      expect(yield* refusal({ sslmode: "verify-full", ca, host: "127.0.0.1" })).toBe("tls")
      expect(yield* refusal({ sslmode: "verify-full", ca: other })).toBe("tls")
      expect(yield* refusal({ sslmode: "verify-ca", ca: other })).toBe("tls")
      expect(yield* refusal({ sslmode: "require", ca: other })).toBe("tls")
      expect(yield* refusal({ sslmode: "verify-full" })).toBe("tls")
      // What is only preferred is given up.
      expect(yield* encrypted({ sslmode: "prefer", ca: other })).toBe(false)
    })
  )

  it.scoped("a client certificate", () =>
    Effect.gen(function* () {
      const { certificates } = yield* SecureTag
      const cert = join(certificates, "client.pem")
      const key = Redacted.make(join(certificates, "client.key"))
      expect(yield* encrypted({ sslmode: "require", as: "by_certificate", cert, key })).toBe(true)
      expect(yield* refusal({ sslmode: "require", as: "by_certificate" })).toBe("authentication")
    })
  )

  for (const sslNegotiation of ["postgres", "direct"] as const) {
    it.scoped(`a statement is cancelled over TLS as well (${sslNegotiation})`, () =>
      Effect.gen(function* () {
        const { url } = yield* SecureTag
        const adapter = yield* connect({ sslmode: "require", sslNegotiation, maxConnections: 1 })
        const running = Effect.promise(() =>
          TestServer.runAs(url, [
            "select pid from pg_stat_activity where query like 'select count(*) from generate%'"
          ])
        )
        const fiber = yield* Effect.fork(
          ask(adapter, "select count(*) from generate_series(1, 1000000000000)")
        )
        yield* Effect.repeat(Effect.delay(running, 10), { until: ([rows]) => rows?.length === 1 })
        yield* Fiber.interrupt(fiber)
        yield* Effect.repeat(Effect.delay(running, 10), { until: ([rows]) => rows?.length === 0 })
        expect((yield* adapter.report).tls).toBe(true)
      })
    )
  }
})
