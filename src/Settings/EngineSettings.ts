/** From a location or a config file's entry to what an engine's adapter needs. The one place that knows all engines. */
import { resolve } from "node:path"
import * as Either from "effect/Either"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import * as Excel from "../Adapter/Excel/Config.js"
import * as Postgres from "../Adapter/Postgres/Config.js"
import * as Sqlite from "../Adapter/Sqlite/Config.js"
import * as SqlServer from "../Adapter/SqlServer/Config.js"
import type { Problem } from "../FatalError.js"
import { type Limits, PartialLimits } from "./Limits.js"
import type { Location } from "./Location.js"

/** An engine with what its adapter needs. */
export type EngineSettings =
  | { readonly engine: "sqlite"; readonly config: Sqlite.Config }
  | { readonly engine: "postgres"; readonly config: Postgres.Config }
  | { readonly engine: "mssql"; readonly config: SqlServer.Config }
  | { readonly engine: "excel" | "csv"; readonly config: Excel.Config }

const common = {
  description: Schema.optionalWith(
    Schema.String.annotations({ description: "what the model is told of the source" }),
    {
      exact: true
    }
  ),
  limits: Schema.optionalWith(PartialLimits, { exact: true })
}

const file = Schema.NonEmptyString.annotations({ description: "a path, relative to the config file" })
const url = Schema.Redacted(Schema.NonEmptyString).annotations({ description: "a connection URL" })

// One literal each: the engine tells which member an entry was meant to be.
const SqliteSource = Schema.Struct({ engine: Schema.Literal("sqlite"), file, ...common })
const ExcelSource = Schema.Struct({ engine: Schema.Literal("excel"), file, ...common })
const CsvSource = Schema.Struct({ engine: Schema.Literal("csv"), file, ...common })
const PostgresUrl = Schema.Struct({ engine: Schema.Literal("postgres"), url, ...common })
const PostgresFields = Schema.Struct({
  engine: Schema.Literal("postgres"),
  ...Struct.omit(Postgres.Config.fields, "connectTimeoutMs", "maxConnections"),
  ...common
})
const SqlServerUrl = Schema.Struct({ engine: Schema.Literal("mssql"), url, ...common })
const SqlServerFields = Schema.Struct({
  engine: Schema.Literal("mssql"),
  ...Struct.omit(SqlServer.fields, "connectTimeoutMs", "maxConcurrent"),
  ...common
})

/** A source in the config file. */
export const SourceEntry = Schema.Union(
  SqliteSource,
  ExcelSource,
  CsvSource,
  PostgresUrl,
  PostgresFields,
  SqlServerUrl,
  SqlServerFields
).annotations({
  description: "a source with engine (sqlite, postgres, mssql, excel or csv) and what it needs"
})
export type SourceEntry = typeof SourceEntry.Type

type Problems = ReadonlyArray<Problem>

/** Limits that were set for a source or for all; those left out take an engine's or the general default. */
export interface EffectiveLimits {
  readonly limits: Limits
  readonly connectTimeoutMs: number | undefined
}

const sqlite = (path: string, limits: Limits): EngineSettings => ({
  engine: "sqlite",
  config: new Sqlite.Config({ file: path, maxConcurrent: limits.maxConcurrent })
})

const ofFile = (engine: "sqlite" | "excel" | "csv", path: string, limits: Limits): EngineSettings =>
  engine === "sqlite" ? sqlite(path, limits) : { engine, config: new Excel.Config({ file: path, engine }) }

const ofPostgres = (
  config: Either.Either<Postgres.Config, ReadonlyArray<string>>,
  where: string,
  { connectTimeoutMs, limits }: EffectiveLimits
): Either.Either<EngineSettings, Problems> =>
  Either.mapBoth(config, {
    onLeft: (faults) => faults.map((found) => ({ where, expected: "a complete PostgreSQL source", found })),
    onRight: (described) => ({
      engine: "postgres" as const,
      config: {
        ...described,
        maxConnections: limits.maxConcurrent,
        ...(connectTimeoutMs === undefined ? {} : { connectTimeoutMs })
      }
    })
  })

const ofSqlServer = (
  config: Either.Either<SqlServer.Config, ReadonlyArray<SqlServer.Problem>>,
  where: string
): Either.Either<EngineSettings, Problems> =>
  Either.mapBoth(config, {
    onLeft: (problems) => problems.map((problem) => ({ ...problem, where: `${where}: ${problem.where}` })),
    onRight: (described) => ({ engine: "mssql" as const, config: described })
  })

const connectionLimits = ({ connectTimeoutMs, limits }: EffectiveLimits) => ({
  ...(connectTimeoutMs === undefined ? {} : { connectTimeoutMs }),
  maxConcurrent: limits.maxConcurrent
})

const ofUrl = (
  engine: "postgres" | "mssql",
  location: Redacted.Redacted<string>,
  where: string,
  effective: EffectiveLimits
): Either.Either<EngineSettings, Problems> =>
  engine === "postgres"
    ? ofPostgres(Postgres.configFromUrl(location), where, effective)
    : ofSqlServer(SqlServer.configFromUrl(location, connectionLimits(effective)), where)

/** The engine of a `SOURCE` argument; relative files resolve from the current folder. */
export const fromLocation = (
  location: Location,
  where: string,
  effective: EffectiveLimits
): Either.Either<EngineSettings, Problems> =>
  location.kind === "file"
    ? Either.right(ofFile(location.engine, resolve(location.file), effective.limits))
    : ofUrl(location.engine, Redacted.make(location.url), where, effective)

/** A PEM text as it is, the path of one from the config file's folder. */
const fileOrText = (folder: string, pem: string) => (pem.includes("-----BEGIN") ? pem : resolve(folder, pem))

/** The engine of a config file's entry; relative files resolve from the config file's folder. */
export const fromEntry = (
  entry: SourceEntry,
  where: string,
  folder: string,
  effective: EffectiveLimits
): Either.Either<EngineSettings, Problems> => {
  if ("file" in entry)
    return Either.right(ofFile(entry.engine, resolve(folder, entry.file), effective.limits))
  if ("url" in entry) return ofUrl(entry.engine, entry.url, `${where}.url`, effective)
  if (entry.engine === "postgres") {
    const { description: _, engine: __, limits: ___, ...fields } = entry
    const config: Postgres.Config = {
      ...fields,
      ...(fields.ca === undefined || fields.ca === "system" ? {} : { ca: fileOrText(folder, fields.ca) }),
      ...(fields.cert === undefined ? {} : { cert: fileOrText(folder, fields.cert) }),
      ...(fields.key === undefined
        ? {}
        : { key: Redacted.make(fileOrText(folder, Redacted.value(fields.key))) }),
      connectTimeoutMs: effective.limits.connectTimeoutMs,
      maxConnections: effective.limits.maxConcurrent
    }
    const faults = Postgres.faultsOf(config)
    return ofPostgres(faults.length > 0 ? Either.left(faults) : Either.right(config), where, effective)
  }
  const { description: _, engine: __, limits: ___, ...fields } = entry
  const config = new SqlServer.Config({
    ...fields,
    ...(fields.ca === undefined ? {} : { ca: fileOrText(folder, fields.ca) }),
    connectTimeoutMs: effective.limits.connectTimeoutMs,
    maxConcurrent: effective.limits.maxConcurrent
  })
  const problems = SqlServer.problemsOf(config)
  return ofSqlServer(problems.length > 0 ? Either.left(problems) : Either.right(config), where)
}

/** The limits in force: a connection text may set its own time to connect. */
export const limitsOf = (settings: EngineSettings, limits: Limits): Limits =>
  "connectTimeoutMs" in settings.config
    ? { ...limits, connectTimeoutMs: settings.config.connectTimeoutMs }
    : limits

const revealed = (value: Redacted.Redacted<string> | undefined): ReadonlyArray<string> =>
  value === undefined ? [] : [Redacted.value(value)]

/** What of an engine's configuration nothing may show. */
export const secretsOf = (settings: EngineSettings): ReadonlyArray<string> => {
  switch (settings.engine) {
    case "sqlite":
    case "excel":
    case "csv":
      return []
    case "postgres": {
      const { key, keyPassword, password } = settings.config
      return [password, key, keyPassword].flatMap(revealed)
    }
    case "mssql":
      return SqlServer.secretsOf(settings.config)
  }
}
