/**
 * What an SQL Server source needs to be named with, and how URLs and ADO connection strings say it. No driver is
 * imported here.
 */
import * as Either from "effect/Either"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { connectionOptions, type Problem } from "./ConnectionString.js"

const text = (description: string) =>
  Schema.optionalWith(Schema.NonEmptyString.annotations({ description }), { exact: true })
const secret = (description: string) =>
  Schema.optionalWith(Schema.Redacted(Schema.String).annotations({ description }), { exact: true })
const whole = (least: number, most: number, fallback: number, description: string) =>
  Schema.optionalWith(
    Schema.Number.pipe(Schema.int(), Schema.between(least, most)).annotations({ description }),
    { exact: true, default: () => fallback }
  )
const flag = (fallback: boolean, description: string) =>
  Schema.optionalWith(Schema.Boolean.annotations({ description }), { exact: true, default: () => fallback })

export const Authentication = Schema.Literal(
  "sql",
  "ntlm",
  "azure-password",
  "azure-service-principal",
  "azure-access-token",
  "azure-managed-identity",
  "azure-default"
)
export type Authentication = typeof Authentication.Type

/** The fields of {@link Config}, flat, so that a config file can take them as they are. */
export const fields = {
  host: Schema.NonEmptyString.annotations({ description: "host name or address" }),
  port: Schema.optionalWith(
    Schema.Number.pipe(Schema.int(), Schema.between(1, 65_535)).annotations({
      description: "TCP port, 1 to 65535"
    }),
    { exact: true }
  ),
  instance: text("a named instance, found by SQL Server Browser; not together with a port"),
  database: text("database name; the login's default database without it"),
  authentication: Schema.optionalWith(
    Authentication.annotations({
      description:
        "sql, ntlm, azure-password, azure-service-principal, azure-access-token, azure-managed-identity or azure-default"
    }),
    { exact: true }
  ),
  user: text("login name"),
  password: secret("password"),
  domain: text("Windows domain, for NTLM"),
  clientId: text("application (client) id, for Azure"),
  tenantId: text("directory (tenant) id, for Azure"),
  clientSecret: secret("client secret of a service principal"),
  accessToken: secret("an Azure access token"),
  encrypt: Schema.optionalWith(
    Schema.Union(Schema.Boolean, Schema.Literal("strict")).annotations({
      description: 'true, false or "strict"'
    }),
    { exact: true, default: () => true as const }
  ),
  trustServerCertificate: flag(false, "accept any certificate"),
  ca: text("certificate authorities to trust: PEM text, or the path of a PEM file"),
  serverName: text("the name that the certificate must have, where it is not the host's"),
  readOnlyIntent: flag(true, "ask an availability group for a readable secondary"),
  multiSubnetFailover: flag(false, "try all addresses of the host at once"),
  applicationName: Schema.optionalWith(Schema.NonEmptyString, { exact: true, default: () => "mcp-query" }),
  connectTimeoutMs: whole(1, 600_000, 5000, "milliseconds to connect"),
  lockTimeoutMs: whole(1, 600_000, 10_000, "milliseconds to wait for another session's lock"),
  maxConcurrent: whole(1, 64, 4, "connections at most")
}

/** Connections are encrypted and the certificate is checked unless the configuration says otherwise. */
export class Config extends Schema.Class<Config>("SqlServerConfig")(fields) {}

export type { Problem } from "./ConnectionString.js"

const needs: Record<
  Authentication,
  ReadonlyArray<"user" | "password" | "domain" | "clientId" | "tenantId" | "clientSecret" | "accessToken">
> = {
  sql: ["user", "password"],
  ntlm: ["domain", "user", "password"],
  "azure-password": ["user", "password", "clientId"],
  "azure-service-principal": ["clientId", "clientSecret", "tenantId"],
  "azure-access-token": ["accessToken"],
  "azure-managed-identity": [],
  "azure-default": []
}

/** The way to log in, as given or as the fields that are there say. */
export const authenticationOf = (config: Config): Authentication => {
  if (config.authentication !== undefined) return config.authentication
  if (config.accessToken !== undefined) return "azure-access-token"
  if (config.clientSecret !== undefined) return "azure-service-principal"
  return config.domain === undefined ? "sql" : "ntlm"
}

/** What is wrong with a configuration whose fields are right one by one. */
export const problemsOf = (config: Config): ReadonlyArray<Problem> => {
  const problems: Array<Problem> = []
  const authentication = authenticationOf(config)
  for (const field of needs[authentication])
    if (config[field] === undefined)
      problems.push({
        where: field,
        expected: `a value for ${authentication} authentication`,
        found: "nothing"
      })
  if (config.port !== undefined && config.instance !== undefined)
    problems.push({ where: "instance", expected: "either a port or an instance", found: "both" })
  if (authentication.startsWith("azure-") && config.encrypt === false)
    problems.push({ where: "encrypt", expected: 'true or "strict" for Azure authentication', found: "false" })
  if (config.trustServerCertificate && config.encrypt === "strict")
    problems.push({
      where: "trustServerCertificate",
      expected: "false with strict encryption",
      found: "true"
    })
  return problems
}

/** The values that nothing may show. */
export const secretsOf = (config: Config): ReadonlyArray<string> =>
  [config.password, config.clientSecret, config.accessToken].flatMap((value) =>
    value === undefined || Redacted.value(value) === "" ? [] : [Redacted.value(value)]
  )

/** Limits of the source that concern its connections. */
export interface ConnectionLimits {
  readonly connectTimeoutMs?: number
  readonly maxConcurrent?: number
}

/**
 * Reads `sqlserver://user:password@host:port/database?encrypt=true`, `mssql://…`, `sqlserver://host;databaseName=…`, and
 * `Server=host\instance,port;Database=…;User Id=…;Password=…`. All problems are told at once, none of them repeats a
 * value that may be secret.
 */
export const configFromUrl = (
  url: Redacted.Redacted<string>,
  limits: ConnectionLimits = {}
): Either.Either<Config, ReadonlyArray<Problem>> => {
  const { options, problems } = connectionOptions(Redacted.value(url))
  if (problems.length > 0) return Either.left(problems)
  const decoded = Schema.decodeUnknownEither(Config, { errors: "all" })({
    ...options,
    ...(limits.connectTimeoutMs === undefined ? {} : { connectTimeoutMs: limits.connectTimeoutMs }),
    ...(limits.maxConcurrent === undefined ? {} : { maxConcurrent: limits.maxConcurrent })
  })
  if (Either.isLeft(decoded))
    return Either.left([{ where: "the URL", expected: "a host and valid options", found: "something else" }])
  const wrong = problemsOf(decoded.right)
  return wrong.length > 0 ? Either.left(wrong) : Either.right(decoded.right)
}
