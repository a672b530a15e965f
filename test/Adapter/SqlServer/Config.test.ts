import { describe, expect, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as Redacted from "effect/Redacted"
import {
  authenticationOf,
  type Config,
  configFromUrl,
  secretsOf
} from "../../../src/Adapter/SqlServer/Config.js"

const read = (url: string) =>
  Either.match(configFromUrl(Redacted.make(url)), {
    onLeft: (problems) => ({ problems }),
    onRight: (config) => ({ config })
  })

const configOf = (url: string): Config =>
  Either.getOrThrowWith(configFromUrl(Redacted.make(url)), (problems) => new Error(JSON.stringify(problems)))

const plain = (config: Config) => ({
  ...config,
  ...(config.password === undefined ? {} : { password: Redacted.value(config.password) }),
  ...(config.clientSecret === undefined ? {} : { clientSecret: Redacted.value(config.clientSecret) }),
  ...(config.accessToken === undefined ? {} : { accessToken: Redacted.value(config.accessToken) })
})

const login = { user: "app", password: "p;w" }

describe("URLs and connection strings", () => {
  const good: ReadonlyArray<readonly [string, Record<string, unknown>]> = [
    [
      "mssql://app:p%3Bw@db:1444/sales",
      { ...login, host: "db", port: 1444, database: "sales", encrypt: true }
    ],
    [
      "sqlserver://app:p%3Bw@db/sales?encrypt=false",
      { ...login, host: "db", database: "sales", encrypt: false }
    ],
    ["MSSQL://app:p%3Bw@db", { ...login, host: "db" }],
    ["mssql://app:p@ss:w@db/x", { user: "app", password: "p@ss:w", host: "db", database: "x" }],
    ["mssql://app:x@[::1]:1444/d", { host: "::1", port: 1444 }],
    ["mssql://app:x@[fe80::1]/d", { host: "fe80::1" }],
    ["mssql://app:x@db%5CSQLEXPRESS/d", { host: "db", instance: "SQLEXPRESS", database: "d" }],
    ["mssql://app:x@db/d?instanceName=SQLEXPRESS", { instance: "SQLEXPRESS", database: "d" }],
    ["sqlserver://app:x@db/SQLEXPRESS?database=d", { instance: "SQLEXPRESS", database: "d" }],
    ["mssql://app:x@db/d%20e?trustServerCertificate=yes", { database: "d e", trustServerCertificate: true }],
    ["mssql://CORP%5Capp:x@db/d", { user: "app", domain: "CORP" }],
    ["mssql://app:x@db/d?encrypt=strict", { encrypt: "strict" }],
    ["mssql://app:x@db/d?applicationIntent=ReadWrite", { readOnlyIntent: false }],
    ["mssql://app:x@db/d?connectTimeout=7&lockTimeoutMs=250", { connectTimeoutMs: 7000, lockTimeoutMs: 250 }],
    [
      "sqlserver://db:1444;databaseName=d;user=app;password={p;w};encrypt=true",
      { ...login, port: 1444, database: "d" }
    ],
    ["jdbc:sqlserver://db;databaseName=d;user=app;password=x", { host: "db", database: "d" }],
    ["Server=db;Database=d;User Id=app;Password='p;w'", { ...login, host: "db", database: "d" }],
    ['server=tcp:db,1444;initial catalog=d;uid=app;pwd="p;w"', { ...login, port: 1444 }],
    ["Data Source=db\\SQLEXPRESS;Database=d;User=app;Password=x", { host: "db", instance: "SQLEXPRESS" }],
    ["Server=.;User ID=app;Password=x;Encrypt=Optional", { host: "localhost", encrypt: false }],
    ["Server=(local);User ID=app;Password=x;Encrypt=Mandatory;", { host: "localhost", encrypt: true }],
    ["Server=db;User ID=app;Password=it''s\"", { password: "it''s\"" }],
    ["Server=db;User ID=app;Password='it''s'", { password: "it's" }],
    ["Server=db;User ID=app;Password=x;Pooling=true;Max Pool Size=9;Persist Security Info=False", {}],
    [
      "Server=db;Authentication=Active Directory Password;User ID=app;Password=x;Client Id=c",
      { authentication: "azure-password", clientId: "c" }
    ],
    [
      "mssql://db/d?authentication=azure-service-principal&clientId=c&clientSecret=s&tenantId=t",
      { authentication: "azure-service-principal", clientSecret: "s" }
    ],
    ["mssql://db/d?accessToken=tok", { accessToken: "tok" }],
    ["mssql://db/d?authentication=azure-managed-identity", { authentication: "azure-managed-identity" }],
    [
      "mssql://app:x@db/d?ca=/etc/ca.pem&hostNameInCertificate=db.corp",
      { ca: "/etc/ca.pem", serverName: "db.corp" }
    ]
  ]
  it("are read in one pass", () => {
    const blanks = " ".repeat(100_000)
    expect(read(`Server=db;User ID=app;Password=x;${blanks}`)).toHaveProperty("config")
    expect(read(`Server=db;User ID=app;Password=x;${blanks}y${blanks}`)).toHaveProperty("problems")
  })

  for (const [url, expected] of good) it(url, () => expect(plain(configOf(url))).toMatchObject(expected))

  it("mean what they leave out: encrypted, checked, for reading", () =>
    expect(plain(configOf("mssql://app:x@db/d"))).toMatchObject({
      encrypt: true,
      trustServerCertificate: false,
      readOnlyIntent: true,
      connectTimeoutMs: 5000,
      maxConcurrent: 4
    }))

  it("take the source's limits, which overrule an option of their own", () => {
    const limits = { connectTimeoutMs: 1234, maxConcurrent: 2 }
    expect(Either.getOrThrow(configFromUrl(Redacted.make("mssql://a:b@c"), limits))).toMatchObject(limits)
    const url = Redacted.make("mssql://a:b@c?timeout=3")
    expect(Either.getOrThrow(configFromUrl(url, limits))).toMatchObject(limits)
    expect(Either.getOrThrow(configFromUrl(url))).toMatchObject({ connectTimeoutMs: 3000 })
  })

  it("choose the login by what is there", () => {
    expect(authenticationOf(configOf("mssql://a:b@c"))).toBe("sql")
    expect(authenticationOf(configOf("mssql://D%5Ca:b@c"))).toBe("ntlm")
    expect(authenticationOf(configOf("mssql://c?accessToken=t"))).toBe("azure-access-token")
    expect(authenticationOf(configOf("mssql://c?clientId=i&clientSecret=s&tenantId=t"))).toBe(
      "azure-service-principal"
    )
  })

  it("tell their secrets to whoever must hide them, and to nobody else", () => {
    const config = configOf("mssql://app:hush@db/d")
    expect(secretsOf(config)).toEqual(["hush"])
    expect(JSON.stringify(config)).not.toContain("hush")
    expect(String(config)).not.toContain("hush")
  })
})

describe("what is wrong", () => {
  const bad: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = [
    ["mssql://", ["server|host"]],
    ["mssql://db/d", ["user", "password"]],
    ["mssql://app@db/d", ["password"]],
    ["mssql://app:x@db:99999/d", ["port"]],
    [
      "mssql://app:x@db/d?encrypt=maybe&trustServerCertificate=perhaps&port=x",
      ["encrypt", "trustServerCertificate", "port"]
    ],
    ["mssql://app:x@db/d?nosuch=1", ["nosuch"]],
    ["mssql://app:x@db%5CI:1444/d", ["instance"]],
    ["mssql://app:x@db/d?encrypt=strict&trustServerCertificate=true", ["trustServerCertificate"]],
    ["mssql://db/d?accessToken=t&encrypt=false", ["encrypt"]],
    ["mssql://db?authentication=ntlm", ["domain", "user", "password"]],
    ["Server=db;Integrated Security=SSPI", ["Integrated Security"]],
    ["Server=np:db;User ID=a;Password=b", ["Server"]],
    ["Server=(localdb)\\x;User ID=a;Password=b", ["Server"]],
    ["Server=db;Database", ["connection string"]],
    ["Database=d;User ID=a;Password=b", ["server"]],
    ["mssql://app:%zz@db/d", ["password"]]
  ]
  for (const [url, where] of bad)
    it(`${url}: ${where.join(", ")}`, () => {
      const { problems = [] } = { problems: [], ...read(url) }
      expect(problems.length).toBe(where.length)
      for (const [index, pattern] of where.entries())
        expect(problems[index]?.where).toMatch(new RegExp(pattern, "i"))
      expect(problems.every(({ expected, found }) => expected !== "" && found !== "")).toBe(true)
    })

  it("does not repeat what may be secret", () => {
    const said = JSON.stringify([
      read("mssql://app:hush%zz@db/d?encrypt=maybe"),
      read("Server=db;Password=hush;User ID=a;Nosuch=1;Encrypt=perhaps"),
      // Passwords with characters that should have been escaped.
      read("mssql://app:hush/hush@db/d"),
      read("mssql://app:a?hush@db/d"),
      read("mssql://app:a@hush%zz/d"),
      read("Server=np:hush;User ID=a;Password=b")
    ])
    expect(said).not.toContain("hush")
    expect(said).toContain("perhaps")
  })
})
