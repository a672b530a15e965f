import { describe, expect, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as JSONSchema from "effect/JSONSchema"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { Config, configFromUrl, faultsOf, hostsOf } from "../../../src/Adapter/Postgres/Config.js"

const read = (url: string) => configFromUrl(Redacted.make(url))
const config = (url: string) => Either.getOrThrow(read(url))
const problems = (url: string) => Either.getOrThrow(Either.flip(read(url)))

describe("a URL", () => {
  it("has libpq's parts and defaults", () => {
    const { user, password, database, sslmode, connectTimeoutMs, ...rest } = config(
      "postgresql://us%40er:p%3Aw%2F1@db.example:6543/my%20db?sslmode=verify-full&connect_timeout=3&application_name=x&options=-c%20work_mem%3D64kB"
    )
    expect({ user, database, sslmode, connectTimeoutMs }).toEqual({
      user: "us@er",
      database: "my db",
      sslmode: "verify-full",
      connectTimeoutMs: 3000
    })
    expect(password && Redacted.value(password)).toBe("p:w/1")
    expect(rest).toMatchObject({ applicationName: "x", options: "-c work_mem=64kB" })
    expect(hostsOf(config("postgres://"))).toEqual([{ host: "localhost", port: 5432 }])
    expect(config("postgres://h").sslmode).toBe("prefer")
    expect(config("postgres://h?ssl=true").sslmode).toBe("require")
  })

  it("has several hosts, addresses and sockets", () => {
    expect(hostsOf(config("postgres://a:1,b,[::1]:3/d?target_session_attrs=read-write"))).toEqual([
      { host: "a", port: 1 },
      { host: "b", port: 5432 },
      { host: "::1", port: 3 }
    ])
    expect(hostsOf(config("postgres:///d?host=a,b&port=7"))).toEqual([
      { host: "a", port: 7 },
      { host: "b", port: 7 }
    ])
    expect(hostsOf(config("postgres://%2Fvar%2Frun%2Fpostgresql/d"))).toEqual([
      { host: "/var/run/postgresql", port: 5432 }
    ])
  })

  it("takes a password with an @", () => {
    const { password } = config("postgres://u:p@ss@h/d")
    expect(password && Redacted.value(password)).toBe("p@ss")
  })

  it("is refused with all its problems, and never repeats a value", () => {
    const found = problems(
      "postgres://user:s3cret@host:99999/db?sslmode=s3cret&nosuch=s3cret&connect_timeout=s3cret&channel_binding=require"
    )
    expect(found).toHaveLength(5)
    expect(found.join()).not.toContain("s3cret")
    expect(found.join()).toContain("sslmode")
    expect(problems("mysql://s3cret").join()).not.toContain("s3cret")
    // a password that is not escaped
    expect(problems("postgres://user:s3/cret@host/db").join()).not.toMatch(/s3|cret/)
    expect(problems("postgres://u:%zz@h").join()).toContain("%25")
  })

  it("is refused where its parts do not fit together", () => {
    expect(problems("postgres://h?sslmode=verify-ca")).toHaveLength(1)
    expect(problems("postgres://h?sslcert=/x/c.pem")).toHaveLength(1)
    expect(problems("postgres://h?sslmode=prefer&sslrootcert=system")).toHaveLength(1)
    expect(problems("postgres://h?sslnegotiation=direct")).toHaveLength(1)
    expect(problems("postgres://a:1,b:2,c?port=1,2")).toHaveLength(1)
  })
})

describe("fields", () => {
  it("decode with defaults, secrets redacted", () => {
    const decoded = Schema.decodeUnknownSync(Config)({ host: "h", password: "s3cret" })
    expect(JSON.stringify(decoded)).not.toContain("s3cret")
    expect(decoded).toMatchObject({ sslmode: "prefer", targetSessionAttrs: "any", maxConnections: 4 })
    expect(hostsOf(decoded)).toEqual([{ host: "h", port: 5432 }])
    expect(faultsOf(decoded)).toEqual([])
    expect(faultsOf({ ...decoded, hosts: [{ host: "a", port: 1 }] })).toHaveLength(1)
  })

  it("have a JSON Schema", () => {
    expect(JSON.stringify(JSONSchema.make(Config))).toContain("targetSessionAttrs")
  })
})
