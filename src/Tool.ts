/** A tool of the server: what a client sees of it, and the Effect that answers a call. */
import type * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"
import type { Parameter } from "./Adapter.js"
import { clip } from "./Clip.js"
import { closest } from "./Closest.js"
import { isJsonObject } from "./JsonObject.js"
import { optional } from "./OptionalField.js"
import { longestStatement } from "./Policy.js"
import { type InputIssue, InvalidInput, type QueryError } from "./QueryError.js"
import { formatPath, type SchemaIssue, schemaIssues } from "./SchemaIssue.js"
import type { CurrentCall, Source, SourcesService } from "./Sources.js"

/** An answer, and what the log says of it. */
export interface ToolAnswer<A extends object = object> {
  /** Conforms to the tool's output Schema. */
  readonly value: A
  readonly facts?: { readonly rowCount?: number; readonly truncated?: boolean }
}

export interface Tool<A extends object = object> {
  readonly name: string
  readonly title: string
  readonly description: string
  /** A TypeLiteral: its JSON Schema is an object without additional properties. */
  readonly input: Schema.Schema.AnyNoContext
  readonly output: Schema.Schema.AnyNoContext
  readonly run: (args: unknown) => Effect.Effect<ToolAnswer<A>, QueryError, CurrentCall>
}

// ---------------------------------------------------------------------------------------------------------------------
// Arguments

const reasonOf = (issue: SchemaIssue): InputIssue["reason"] => {
  switch (issue.kind) {
    case "missing":
      return "missing_argument"
    case "unexpected":
      return "unknown_argument"
    case "type":
      return "wrong_type"
    case "refinement":
      return issue.path.length === 1 && issue.path[0] === "source" ? "unknown_source" : "out_of_range"
  }
}

/** Faults that are told of one by one; any others are counted. */
const mostIssues = 20

/** Characters of a path, which holds the caller's own names. */
const longestPath = 100

const toInputIssue = (issue: SchemaIssue): InputIssue => {
  const unexpected = issue.kind === "unexpected"
  const path = formatPath(issue.path)
  const short = path.length <= longestPath
  const [near] = unexpected && short ? closest(String(issue.path.at(-1)), issue.known, 1) : []
  return {
    path: clip(path, longestPath),
    reason: reasonOf(issue),
    expected: unexpected
      ? near === undefined
        ? `one of ${issue.known.join(", ")}`
        : `${near} (or another of ${issue.known.join(", ")})`
      : issue.expected,
    received: issue.received
  }
}

const sentence = ({ expected, path, reason, received }: InputIssue): string => {
  const what = path === "" ? "The arguments" : `The argument ${path}`
  switch (reason) {
    case "missing_argument":
      return `${what} is missing: expected ${expected}.`
    case "unknown_argument":
      return `There is no argument ${path}: expected ${expected}.`
    case "unknown_source":
      return `There is no such source: expected ${expected}, got ${received}.`
    default:
      return `${what} must be ${expected}, got ${received}.`
  }
}

/** The faults in one failure, and how many `others` there are; the first gives its reason. */
export const invalidInput = (issues: readonly [InputIssue, ...Array<InputIssue>], others = 0): InvalidInput =>
  new InvalidInput({
    reason: issues[0].reason,
    message: [
      ...(others > 0
        ? [`There are ${issues.length + others} faults; these are the first ${issues.length}.`]
        : []),
      ...issues.map(sentence)
    ].join(" "),
    issues
  })

const keysOf = ({ ast }: Schema.Schema.AnyNoContext): ReadonlySet<string> =>
  new Set(AST.getPropertySignatures(ast).map(({ name }) => String(name)))

/**
 * The arguments with only the first few of those that are not `known`, and how many others there were: a Schema takes
 * seconds to find fault with each of very many.
 */
const withoutMost = (known: ReadonlySet<string>, args: unknown): readonly [args: unknown, others: number] => {
  if (!isJsonObject(args)) return [args, 0]
  const unknown = Object.keys(args).filter((key) => !known.has(key))
  if (unknown.length <= mostIssues) return [args, 0]
  const told = unknown.slice(0, mostIssues)
  const kept = [...known, ...told].flatMap((key) => (Object.hasOwn(args, key) ? [[key, args[key]]] : []))
  return [Object.fromEntries(kept), unknown.length - told.length]
}

/** The arguments as the schema's type, or the faults of them. */
export const decodeArguments = <S extends Schema.Schema.AnyNoContext>(schema: S) => {
  const decode = Schema.decodeUnknownEither(schema, { errors: "all", onExcessProperty: "error" })
  const known = keysOf(schema)
  return (args: unknown): Either.Either<Schema.Schema.Type<S>, InvalidInput> => {
    const [kept, others] = withoutMost(known, args ?? {})
    return Either.mapLeft(decode(kept), (error) => {
      const all = schemaIssues(error.issue)
      const [first, ...rest] = all.slice(0, mostIssues).map(toInputIssue)
      return invalidInput(
        [
          first ?? { path: "", reason: "wrong_type", expected: "an object", received: "something else" },
          ...rest
        ],
        others + Math.max(0, all.length - mostIssues)
      )
    })
  }
}

/** One of the ids. */
const sourceId = (sources: SourcesService) => {
  const [first, ...rest] = sources.all.map(({ id }) => id)
  return Schema.Literal(first ?? "", ...rest).annotations({
    description: rest.length > 0 ? `one of ${[first, ...rest].join(", ")}` : `${first}`
  })
}

/** `source` where leaving it out means something of its own. */
export const optionalSourceField = (sources: SourcesService) => ({ source: optional(sourceId(sources)) })

/** `source`: required where there are several, and always one of the ids. */
export const sourceField = (sources: SourcesService) =>
  sources.all.length > 1 ? { source: sourceId(sources) } : optionalSourceField(sources)

export const sqlField = Schema.String.pipe(
  Schema.minLength(1),
  Schema.maxLength(longestStatement)
).annotations({
  description: "1 to 100,000 characters"
})

/** A value of JSON that can stand for a parameter; integers that a JavaScript number would round come as bigint. */
const ParameterValue = Schema.declare(
  (value): value is Parameter =>
    value === null ||
    typeof value === "string" ||
    typeof value === "boolean" ||
    typeof value === "bigint" ||
    Number.isFinite(value),
  { description: "a string, number, boolean or null" }
)

/** As many as PostgreSQL's protocol carries; the other engines take fewer. */
const mostParams = 65_535

/** How many there are is looked at first: a Schema takes seconds to find fault with each of very many. */
export const paramsField = optional(
  Schema.compose(
    Schema.Array(Schema.Unknown).pipe(
      Schema.maxItems(mostParams, { description: "an array of at most 65,535 values" })
    ),
    Schema.Array(ParameterValue)
  ).annotations({
    jsonSchema: {
      type: "array",
      items: { anyOf: [{ type: "string" }, { type: "number" }, { type: "boolean" }, { type: "null" }] }
    }
  })
)

export const numberField = (most: number) =>
  optional(
    Schema.Number.pipe(Schema.int(), Schema.between(1, most)).annotations({
      description: `a whole number from 1 to ${most}`
    })
  )

/** The source of a call whose arguments have been decoded: the named one, or the only one. */
export const sourceOf = (sources: SourcesService, id: string | undefined): Source => {
  const source = sources.all.find((candidate) => candidate.id === id) ?? sources.all[0]
  if (source === undefined) throw new Error("There is no source.")
  return source
}

/** The list of tools is read in every session; a source's whole description stands in the answer of `schema`. */
const mostBytesOfDescription = 150

const clipped = (text: string) => {
  let kept = ""
  let bytes = 0
  for (const character of text) {
    bytes += Buffer.byteLength(character)
    if (bytes > mostBytesOfDescription) return `${kept}…`
    kept += character
  }
  return text
}

/** What the model is told of the sources in a tool's description. */
export const sourcesSentence = (sources: SourcesService): string => {
  const told = sources.all.map(({ description, engine, id }) =>
    description === undefined ? `${id} (${engine})` : `${id} (${engine}: ${clipped(description)})`
  )
  return `${told.length > 1 ? "Sources" : "Source"}: ${told.join(", ")}.`
}

/** A number within the bounds of any source may still be beyond those of the chosen one. */
export const checkCap = (
  path: string,
  value: number | undefined,
  cap: number
): Either.Either<void, InvalidInput> =>
  value === undefined || value <= cap
    ? Either.right(undefined)
    : Either.left(
        invalidInput([
          {
            path,
            reason: "out_of_range",
            expected: `a whole number from 1 to ${cap}`,
            received: `the number ${value}`
          }
        ])
      )
