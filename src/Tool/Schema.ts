/** The tool `schema`: from "what is here?" to the facts that a right query needs. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { optional } from "../OptionalField.js"
import type { SchemaAnswer, SourceList } from "../SchemaResult.js"
import type { SourcesService } from "../Sources.js"
import {
  decodeArguments,
  numberField,
  optionalSourceField,
  sourceOf,
  type Tool,
  type ToolAnswer
} from "../Tool.js"

/** Most objects that one call may ask for. */
const maxLimit = 10_000

/** Characters. No engine has a longer name, quoted and qualified. */
const longestName = 2000

/**
 * Loose, so that every session's list of tools stays short: the whole truth is SchemaResult.ts.
 */
const Output = Schema.Struct({
  sources: optional(Schema.Array(Schema.Unknown)),
  names: optional(Schema.Record({ key: Schema.String, value: Schema.Array(Schema.String) })),
  comments: optional(Schema.Record({ key: Schema.String, value: Schema.String })),
  objects: optional(Schema.Array(Schema.Unknown)),
  total: optional(Schema.Number),
  truncated: Schema.Boolean,
  notes: optional(Schema.Array(Schema.String))
})

const argumentsOf = (sources: SourcesService) =>
  Schema.Struct({
    ...optionalSourceField(sources),
    name: optional(
      Schema.String.pipe(Schema.maxLength(longestName)).annotations({
        description: 'a name or pattern ("order*"), at most 2,000 characters'
      })
    ),
    detail: optional(Schema.Literal("names", "columns", "full")),
    limit: numberField(maxLimit)
  })

/** `unasked`: something was asked for that only a source could answer. */
const listOf = (sources: SourcesService, unasked: boolean): ToolAnswer<SourceList> => ({
  value: {
    sources: sources.all.map(({ description, engine, id }) => ({
      id,
      engine,
      ...(description === undefined ? {} : { description })
    })),
    truncated: false,
    ...(unasked ? { notes: ["Name one of these sources as source to look into it."] } : {})
  }
})

export const make = (sources: SourcesService): Tool<SchemaAnswer> => {
  const input = argumentsOf(sources)
  const decode = decodeArguments(input)
  const several = sources.all.length > 1
  return {
    name: "schema",
    title: "Look at the schema",
    description:
      `Says what can be queried. Without name: all names by kind${several ? " (without source: the sources)" : ""}. ` +
      "With an exact name: its columns, keys, checks and rows; several at once with detail columns and a pattern. " +
      "detail full adds indexes, referencing tables and the definition. Names come as SQL must write them.",
    input,
    output: Output,
    run: (raw) =>
      Effect.gen(function* () {
        const args = yield* decode(raw)
        if (several && args.source === undefined) return listOf(sources, args.name !== undefined)
        const source = sourceOf(sources, args.source)
        const { maxBytes, timeoutMs } = source.limits
        const Catalog = yield* Effect.promise(() => import("../Catalog.js"))
        // Nobody needs to be asked for that.
        if (source.dialect.catalog === undefined) return yield* Catalog.unreadable(source.dialect)
        const value = yield* source.run(timeoutMs, (adapter) =>
          Catalog.lookUp(adapter, { name: args.name, detail: args.detail, limit: args.limit, maxBytes })
        )
        return { value, facts: { truncated: value.truncated } }
      })
  }
}
