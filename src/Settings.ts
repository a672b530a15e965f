/**
 * The only reader of the command line's sources, the environment and the config file. It yields settings that every
 * other room can trust, or one {@link FatalError} with all problems.
 */
import { readFileSync } from "node:fs"
import { basename, dirname, resolve } from "node:path"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import { FatalError, type Problem } from "./FatalError.js"
import { describeKind, formatPath, type SchemaIssue, schemaIssues } from "./SchemaIssue.js"
import { ConfigFile, LogSettings, substitute } from "./Settings/ConfigFile.js"
import {
  type EngineSettings,
  fromEntry,
  fromLocation,
  limitsOf,
  secretsOf
} from "./Settings/EngineSettings.js"
import { defaultLimits, type Limits } from "./Settings/Limits.js"
import { defaultId, type Location, parseLocation } from "./Settings/Location.js"
import { repeatedKeys } from "./Settings/RepeatedKeys.js"
import { SourceId } from "./Settings/SourceId.js"

export type SourceSettings = EngineSettings & {
  readonly id: string
  /** What the model is told of the source. */
  readonly description: string | undefined
  readonly limits: Limits
}

export interface Settings {
  readonly sources: Arr.NonEmptyReadonlyArray<SourceSettings>
  readonly log: LogSettings
  readonly structuredContent: boolean
  /** Passwords and tokens that nothing may show. */
  readonly secrets: ReadonlyArray<string>
}

export interface Invocation {
  /** The `SOURCE` arguments. */
  readonly sources: ReadonlyArray<string>
  /** The value of `--config`. */
  readonly config: string | undefined
  readonly environment: Record<string, string | undefined>
}

type Problems = ReadonlyArray<Problem>

interface Located {
  readonly where: string
  readonly id: string
  readonly location: Location
}

const problem = (where: string, expected: string, found: string): Problem => ({ where, expected, found })

const oneOfFour = "a SOURCE argument, --config FILE, MCP_QUERY_CONFIG or DATABASE_URL"

/** The settings of one start of the program. */
export const load = (invocation: Invocation): Effect.Effect<Settings, FatalError> => {
  const { config, environment, sources } = invocation
  const loaded =
    sources.length > 0 && config !== undefined
      ? Either.left([problem("--config", "either SOURCE arguments or --config", "both")])
      : sources.length > 0
        ? fromArguments(sources, environment)
        : config !== undefined
          ? fromFile(config, "--config", environment)
          : environment["MCP_QUERY_CONFIG"]
            ? fromFile(environment["MCP_QUERY_CONFIG"], "MCP_QUERY_CONFIG", environment)
            : environment["DATABASE_URL"]
              ? fromUrl(environment["DATABASE_URL"])
              : Either.left([problem("sources", oneOfFour, "none of them")])
  return Either.match(loaded, {
    onLeft: (problems) =>
      Arr.isNonEmptyReadonlyArray(problems)
        ? Effect.fail(new FatalError({ problems }))
        : Effect.dieMessage("A failure without a problem."),
    onRight: Effect.succeed
  })
}

const fromArguments = (
  sources: ReadonlyArray<string>,
  environment: Invocation["environment"]
): Either.Either<Settings, Problems> =>
  settingsOf(sources.map((text, index) => locate(text, `SOURCE ${index + 1}`, environment)))

const fromUrl = (url: string): Either.Either<Settings, Problems> =>
  settingsOf([fromVariable("DATABASE_URL", undefined, url)])

/** `[id=]LOCATION`, where LOCATION may be `env:NAME`. */
const locate = (
  text: string,
  where: string,
  environment: Invocation["environment"]
): Either.Either<Located, Problems> => {
  const [, prefix, rest] = /^([A-Za-z0-9_-]+)=(.*)$/s.exec(text) ?? []
  // `Server=…;Database=…` is a location that begins like an id.
  const id = prefix !== undefined && !/^server$/i.test(prefix) ? prefix : undefined
  const location = id === undefined ? text : (rest ?? "")
  if (id !== undefined && !Schema.is(SourceId)(id))
    return Either.left([problem(where, "an id of a-z, 0-9 and _ before =", JSON.stringify(id))])
  if (!location.startsWith("env:")) return located(where, id, location)
  const name = location.slice("env:".length)
  const value = environment[name]
  return value === undefined || value === ""
    ? Either.left([problem(where, `the environment variable ${name} to hold a location`, "it is not set")])
    : fromVariable(`${where} (${name})`, id, value)
}

/** What a variable holds is not repeated: it may have been meant for a secret's place. */
const fromVariable = (where: string, id: string | undefined, text: string) =>
  located(where, id, text, () => "something else")

const located = (
  where: string,
  id: string | undefined,
  text: string,
  show?: (location: string) => string
): Either.Either<Located, Problems> =>
  Either.mapBoth(parseLocation(text, show), {
    onLeft: ({ expected, found }) => [problem(where, expected, found)],
    onRight: (location) => ({ where, id: id ?? defaultId(location), location })
  })

const settingsOf = (
  all: ReadonlyArray<Either.Either<Located, Problems>>
): Either.Either<Settings, Problems> =>
  assemble(
    duplicates(Arr.getRights(all)),
    all.map(
      Either.flatMap(({ id, location, where }) =>
        Either.map(
          fromLocation(location, where, { limits: defaultLimits, connectTimeoutMs: undefined }),
          (engine) => ({ ...engine, id, description: undefined, limits: limitsOf(engine, defaultLimits) })
        )
      )
    ),
    LogSettings.make({}),
    true
  )

const duplicates = (all: ReadonlyArray<Located>): Problems =>
  all
    .filter(({ id }, index) => all.findIndex((other) => other.id === id) < index)
    .map(({ id, where }) =>
      problem(where, "an id of its own (write id=LOCATION)", `a second ${JSON.stringify(id)}`)
    )

const assemble = (
  problems: Problems,
  sources: ReadonlyArray<Either.Either<SourceSettings, Problems>>,
  log: LogSettings,
  structuredContent: boolean
): Either.Either<Settings, Problems> => {
  const [faults, all] = Arr.separate(sources)
  const every = [...faults.flat(), ...problems]
  if (every.length > 0) return Either.left(every)
  return Arr.isNonEmptyReadonlyArray(all)
    ? Either.right({ sources: all, log, structuredContent, secrets: all.flatMap(secretsOf) })
    : Either.left([problem("sources", "at least one source", "none")])
}

// ---------------------------------------------------------------------------------------------------------------------
// The config file

interface Content {
  readonly value: unknown
  /** Of keys that stand twice. */
  readonly problems: Problems
}

const read = (file: string, where: string): Either.Either<Content, Problems> => {
  let text: string
  try {
    text = readFileSync(file, "utf8").replace(/^\ufeff/, "")
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "an unreadable file"
    return Either.left([problem(where, `a readable file at ${file}`, code)])
  }
  try {
    const value: unknown = JSON.parse(text)
    const problems = repeatedKeys(text).map((path) =>
      problem(shownPath(path), "a key of its own", "a second one")
    )
    return Either.right({ value, problems })
  } catch (error) {
    // V8 quotes the text around the fault, which may hold a secret: only the place is told.
    const place =
      error instanceof Error ? (/position \d+( \(line \d+ column \d+\))?/.exec(error.message)?.[0] ?? "") : ""
    return Either.left([problem(basename(file), "JSON", `a syntax error ${place}`.trim())])
  }
}

const fromFile = (
  file: string,
  where: string,
  environment: Invocation["environment"]
): Either.Either<Settings, Problems> =>
  Either.flatMap(read(file, where), ({ problems, value: raw }) => {
    const missing: Array<Problem> = []
    const filled = new Set<string>()
    const value = substitute(raw, environment, (path, name, isSet) => {
      if (isSet) filled.add(formatPath(path))
      else missing.push(problem(shownPath(path), `the environment variable ${name}`, "it is not set"))
    })
    const decoded = Either.mapLeft(
      Schema.decodeUnknownEither(ConfigFile, { errors: "all", onExcessProperty: "error" })(value),
      (error) => schemaIssues(error.issue).map((issue) => configProblem(issue, (where) => filled.has(where)))
    )
    // A variable that is missing makes its value wrong, too.
    const places = new Set(missing.map(({ where }) => where))
    const others = Either.isLeft(decoded) ? decoded.left.filter(({ where }) => !places.has(where)) : []
    const all = [...problems, ...missing, ...others]
    return all.length > 0
      ? Either.left(all)
      : Either.flatMap(decoded, (config) => ofConfig(config, dirname(resolve(file))))
  })

/** Keys that may hold a secret, also ones that no engine here knows. */
const secretKey = /pass|pwd|pw$|token|secret|credential|auth(?!entication)|cert|key|url|uri|dsn|connection/i

/** A URL with a user in it, or a connection string with a password. */
const holdsSecret = (text: string) => {
  const slashes = text.indexOf("//")
  return (slashes >= 0 && text.includes("@", slashes)) || (text.includes("=") && /pass|pwd/i.test(text))
}

/** A URL may stand in a key's place. */
const shownPath = (path: ReadonlyArray<PropertyKey>) =>
  formatPath(path.map((key) => (typeof key === "string" && holdsSecret(key) ? "(not shown)" : key)))

/**
 * A value is repeated only where the Schema has a place for it, and nothing suggests a secret. `filled`: whether the
 * environment gave a part of it.
 */
const configProblem = (
  { actual, expected, kind, path, received }: SchemaIssue,
  filled: (where: string) => boolean
): Problem => {
  const where = shownPath(path)
  const hidden =
    kind === "unexpected" ||
    filled(formatPath(path)) ||
    path.some((key) => secretKey.test(String(key))) ||
    (typeof actual === "string" && holdsSecret(actual))
  return problem(where || "the file", expected, hidden ? describeKind(actual) : received)
}

const ofConfig = (config: ConfigFile, folder: string): Either.Either<Settings, Problems> =>
  assemble(
    [],
    Object.entries(config.sources).map(([id, entry]) => {
      const given = { ...config.limits, ...entry.limits }
      const limits = { ...defaultLimits, ...given }
      const effective = { limits, connectTimeoutMs: given.connectTimeoutMs }
      return Either.map(fromEntry(entry, `sources.${id}`, folder, effective), (engine) => ({
        ...engine,
        id,
        description: entry.description,
        limits: limitsOf(engine, limits)
      }))
    }),
    config.log.file === null ? config.log : { ...config.log, file: resolve(folder, config.log.file) },
    config.structuredContent
  )
