/** What an application's sources must be. The command does not load it. */
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import * as Engines from "../Engines.js"
import type { Problem } from "../FatalError.js"
import { formatPath, schemaIssues } from "../SchemaIssue.js"
import { PartialLimits } from "../Settings/Limits.js"
import { SourceId } from "../Settings/SourceId.js"
import type { SourceOptions } from "../Sources.js"

const reserved = Engines.names.join(", ")

const Options = Schema.Array(Schema.Struct({ id: SourceId, limits: Schema.optional(PartialLimits) }))

const faultsOf = <A, I>(
  schema: Schema.Schema<A, I>,
  value: unknown,
  path: ReadonlyArray<PropertyKey>
): ReadonlyArray<Problem> => {
  const decoded = Schema.decodeUnknownEither(schema, { errors: "all" })(value)
  const faults = Either.isLeft(decoded) ? schemaIssues(decoded.left.issue) : []
  return faults.map((fault) => ({
    where: formatPath([...path, ...fault.path]),
    expected: fault.expected,
    found: fault.received
  }))
}

/** One of ours, for those whom no compiler tells. */
const EngineName = Schema.String.pipe(Schema.filter((name) => Engines.names.includes(name))).annotations({
  description: `${reserved}, or a Dialect`
})

const text = (most: number) =>
  Schema.String.pipe(
    Schema.filter((value) => value.trim() !== "" && value.length <= most && !/\p{C}/u.test(value))
  ).annotations({ description: `a text of 1 to ${most} printable characters` })

/** What clients are shown of a Dialect. By its name they tell it from our engines. */
const Wording = Schema.Struct({
  name: Schema.String.pipe(
    Schema.pattern(/^[a-z][a-z0-9_]{0,39}$/),
    Schema.filter((name) => !Engines.names.includes(name))
  ).annotations({
    description: `a name of a-z, 0-9 and _ that begins with a letter, 40 characters at most, and none of ${reserved}`
  }),
  language: text(40),
  placeholder: text(20)
})

const engineFaults = ({ engine }: SourceOptions, index: number): ReadonlyArray<Problem> => {
  const path = ["sources", index, "engine"]
  return typeof engine === "string" ? faultsOf(EngineName, engine, path) : faultsOf(Wording, engine, path)
}

/** Everything that is wrong with them. */
export const problemsOf = (options: ReadonlyArray<SourceOptions>): ReadonlyArray<Problem> => {
  const ids = options.map(({ id }) => id)
  return [
    ...(options.length === 0 ? [{ where: "sources", expected: "at least one source", found: "none" }] : []),
    ...faultsOf(Options, options, ["sources"]),
    ...options.flatMap(engineFaults),
    ...ids
      .filter((id, index) => ids.indexOf(id) < index)
      .map((id) => ({
        where: "sources",
        expected: "an id of its own",
        found: `a second ${JSON.stringify(id)}`
      }))
  ]
}
