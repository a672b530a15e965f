/**
 * How a PostgreSQL source is described: as fields, or as a URL in libpq's form. No driver is imported here, so that
 * reading a configuration costs nothing.
 */
import * as Either from "effect/Either"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"

/** What libpq means by it: `prefer` (the default) takes TLS where the server has it, and only `verify-…` and a `ca` check who it is. */
export const SslMode = Schema.Literal("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
export type SslMode = typeof SslMode.Type

/** Which of several hosts will do. */
export const TargetSessionAttrs = Schema.Literal(
  "any",
  "read-write",
  "read-only",
  "primary",
  "standby",
  "prefer-standby"
)
export type TargetSessionAttrs = typeof TargetSessionAttrs.Type

const port = Schema.Number.pipe(Schema.int(), Schema.between(1, 65_535))
const millis = Schema.Number.pipe(Schema.int(), Schema.between(1, 2_147_483_647))

const optional = <A, I>(schema: Schema.Schema<A, I>, description: string) =>
  Schema.optionalWith(schema.annotations({ description }), { exact: true })

export const Config = Schema.Struct({
  hosts: Schema.optionalWith(
    Schema.NonEmptyArray(
      Schema.Struct({
        host: Schema.NonEmptyString.annotations({
          description: "Name or address, or the folder of the server's socket (it begins with /)."
        }),
        port: Schema.optionalWith(port, { default: () => 5432 })
      })
    ).annotations({ description: "Servers of the same database; the first that answers is used." }),
    { exact: true }
  ),
  host: optional(Schema.NonEmptyString, "Instead of hosts: one server. Default localhost."),
  port: optional(port, "The port of host. Default 5432."),
  database: optional(Schema.NonEmptyString, "Default: the user's name."),
  user: optional(Schema.NonEmptyString, "Default: the name of the operating system's user."),
  password: optional(Schema.Redacted(Schema.String), "The user's password."),
  sslmode: Schema.optionalWith(SslMode, { default: () => "prefer" as const }),
  ca: optional(
    Schema.NonEmptyString,
    "Certificates that the server's must descend from: a PEM file, its text, or system for the public ones."
  ),
  cert: optional(Schema.NonEmptyString, "The client's certificate: a PEM file or its text."),
  key: optional(Schema.Redacted(Schema.NonEmptyString), "The client's private key: a PEM file or its text."),
  keyPassword: optional(Schema.Redacted(Schema.String), "The password of the private key."),
  sslNegotiation: Schema.optionalWith(Schema.Literal("postgres", "direct"), {
    default: () => "postgres" as const
  }),
  channelBinding: Schema.optionalWith(Schema.Literal("disable", "prefer"), {
    default: () => "prefer" as const
  }),
  targetSessionAttrs: Schema.optionalWith(TargetSessionAttrs, { default: () => "any" as const }),
  loadBalanceHosts: Schema.optionalWith(Schema.Literal("disable", "random"), {
    default: () => "disable" as const
  }),
  applicationName: Schema.optionalWith(Schema.NonEmptyString, { default: () => "mcp-query" }),
  options: optional(Schema.String, "Settings of the session, as in -c search_path=sales."),
  connectTimeoutMs: Schema.optionalWith(
    millis.annotations({ description: "How long opening a session may take, for each host." }),
    { default: () => 5000 }
  ),
  maxConnections: Schema.optionalWith(
    Schema.Number.pipe(Schema.int(), Schema.between(1, 1000)).annotations({
      description: "Sessions at the same time; the source's maxConcurrent."
    }),
    { default: () => 4 }
  )
})
export type Config = typeof Config.Type

/** The hosts to try, in order. */
export const hostsOf = (config: Config): ReadonlyArray<{ readonly host: string; readonly port: number }> =>
  config.hosts ?? [{ host: config.host ?? "localhost", port: config.port ?? 5432 }]

// --- URLs ------------------------------------------------------------------------------------------------------------

/** Parameters that change nothing here: tuning of libpq itself, or the only value that is meant anyway. */
const passedOver =
  /^(keepalives(_idle|_interval|_count)?|tcp_user_timeout|sslcompression|sslsni|ssl_m(in|ax)_protocol_version|gsslib|gssdelegation|krbsrvname|fallback_application_name|min_protocol_version|max_protocol_version)$/

const fieldOf: Record<string, keyof typeof Config.Encoded> = {
  dbname: "database",
  user: "user",
  password: "password",
  sslmode: "sslmode",
  sslrootcert: "ca",
  sslcert: "cert",
  sslkey: "key",
  sslpassword: "keyPassword",
  sslnegotiation: "sslNegotiation",
  channel_binding: "channelBinding",
  target_session_attrs: "targetSessionAttrs",
  load_balance_hosts: "loadBalanceHosts",
  application_name: "applicationName",
  options: "options"
}

const choices: Record<string, ReadonlyArray<string>> = {
  sslmode: SslMode.literals,
  sslnegotiation: ["postgres", "direct"],
  channel_binding: ["disable", "prefer"],
  target_session_attrs: TargetSessionAttrs.literals,
  load_balance_hosts: ["disable", "random"]
}

const decoded = (text: string): string | null => {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}

/**
 * Reads `postgresql://user:password@host:port,host:port/database?name=value`, with libpq's parameters. The problems
 * name the part that is wrong and what was expected, and never repeat a value: any part may hold a secret.
 */
export const configFromUrl = (
  url: Redacted.Redacted<string>
): Either.Either<Config, ReadonlyArray<string>> => {
  const problems: Array<string> = []
  const fields: Record<string, unknown> = {}
  const found = /^postgres(?:ql)?:\/\/([^/?]*)(?:\/([^?]*))?(?:\?(.*))?$/s.exec(Redacted.value(url))
  if (found === null) {
    return Either.left(["The URL does not read as postgresql://user:password@host:port/database?name=value."])
  }
  const [, authority = "", path = "", query = ""] = found
  const at = authority.lastIndexOf("@")
  const text = (part: string, what: string): string => {
    const value = decoded(part)
    if (value === null) problems.push(`The URL's ${what} holds a % that begins no escape; write it as %25.`)
    return value ?? ""
  }

  if (at >= 0) {
    const colon = authority.slice(0, at).indexOf(":")
    const user = text(authority.slice(0, colon < 0 ? at : colon), "user")
    if (user !== "") fields["user"] = user
    if (colon >= 0) fields["password"] = text(authority.slice(colon + 1, at), "password")
  }
  if (path !== "") fields["database"] = text(path, "database")

  let hosts: Array<string> = []
  let ports: Array<string> = []
  const hostList = authority.slice(at + 1)
  if (hostList !== "") {
    for (const part of hostList.split(",")) {
      const [, bracketed, plain, port] = /^(?:\[([^\]]*)\]|([^:]*))(?::(.*))?$/.exec(part) ?? []
      hosts.push(text(bracketed ?? plain ?? part, "host"))
      ports.push(port ?? "")
    }
  }

  let connectTimeout: string | undefined
  for (const pair of query === "" ? [] : query.split("&")) {
    const equals = pair.indexOf("=")
    const name = text(equals < 0 ? pair : pair.slice(0, equals), "parameter")
    const value = equals < 0 ? "" : text(pair.slice(equals + 1), `parameter ${name}`)
    const field = fieldOf[name]
    if (name === "host") hosts = value.split(",")
    else if (name === "port") ports = value.split(",")
    else if (name === "connect_timeout") connectTimeout = value
    else if (name === "ssl" && (value === "true" || value === "1")) fields["sslmode"] = "require"
    else if (name === "requiressl") fields["sslmode"] = value === "1" ? "require" : "prefer"
    else if (name === "client_encoding" && /^(auto|utf-?8)$/i.test(value)) continue
    else if (name === "gssencmode" && value !== "require") continue
    else if (name === "channel_binding" && value === "require") {
      problems.push(
        "The URL's parameter channel_binding=require is not supported; expected disable or prefer."
      )
    } else if (field !== undefined) {
      const allowed = choices[name]
      if (allowed !== undefined && !allowed.includes(value)) {
        problems.push(`The URL's parameter ${name} is none of ${allowed.join(", ")}.`)
      } else if (value !== "") fields[field] = value
    } else if (!passedOver.test(name)) {
      problems.push(
        /^\w{1,40}$/.test(name)
          ? `The URL's parameter ${name} is not supported.`
          : "The URL has a parameter whose name is not supported."
      )
    }
  }

  if (hosts.length === 0) hosts = ["localhost"]
  if (ports.length > 1 && ports.length !== hosts.length) {
    problems.push("The URL has not as many ports as hosts; expected one port, or one for each host.")
  }
  fields["hosts"] = hosts.map((host, i) => {
    const digits = (ports.length === 1 ? ports[0] : ports[i]) ?? ""
    const number = digits === "" ? 5432 : /^\d{1,5}$/.test(digits) ? Number(digits) : 0
    if (number < 1 || number > 65_535) {
      problems.push("The URL's port is no number from 1 to 65535 (escape /, ?, @ and : in a password).")
    }
    return { host: host === "" ? "localhost" : host, port: number }
  })

  if (connectTimeout !== undefined) {
    if (!/^\d{1,6}$/.test(connectTimeout)) {
      problems.push("The URL's parameter connect_timeout is no number of seconds.")
    } else if (Number(connectTimeout) > 0) {
      // libpq takes one second for two.
      fields["connectTimeoutMs"] = Math.max(2, Number(connectTimeout)) * 1000
    }
  }
  if (problems.length > 0) return Either.left(problems)
  return checked(fields)
}

/** Faults that no single field shows. */
export const faultsOf = (config: Config): ReadonlyArray<string> => {
  const { sslmode, ca, cert, key, sslNegotiation, hosts, host, port } = config
  const faults: Array<string> = []
  if (hosts !== undefined && (host !== undefined || port !== undefined)) {
    faults.push("Give either hosts, or host and port.")
  }
  if (sslmode === "verify-ca" && ca === undefined) {
    faults.push("sslmode verify-ca needs the certificates to verify against: ca (in a URL: sslrootcert).")
  }
  if (ca === "system" && sslmode !== "verify-full" && sslmode !== "disable") {
    faults.push("The public certificates (ca system) verify a host only with sslmode verify-full.")
  }
  if ((cert === undefined) !== (key === undefined)) {
    faults.push("A client certificate needs both cert and key (in a URL: sslcert and sslkey).")
  }
  if (sslNegotiation === "direct" && !/^(require|verify-)/.test(sslmode)) {
    faults.push("Direct TLS negotiation needs sslmode require, verify-ca or verify-full.")
  }
  return faults
}

const checked = (fields: unknown): Either.Either<Config, ReadonlyArray<string>> =>
  Schema.decodeUnknownEither(Config)(fields).pipe(
    Either.mapLeft((): ReadonlyArray<string> => ["The URL does not describe a PostgreSQL source."]),
    Either.flatMap((config) => {
      const faults = faultsOf(config)
      return faults.length > 0 ? Either.left(faults) : Either.right(config)
    })
  )
