/** The tool `schema`. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { SourcesService } from "../Sources.js"
import { decodeArguments, numberField, sourceField, type Tool } from "../Tool.js"

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

export const make = (sources: SourcesService): Tool => {
  const input = Schema.Struct({
    ...sourceField(sources),
    name: optional(Schema.String),
    detail: optional(Schema.Literal("names", "columns", "full")),
    limit: numberField(2000)
  })
  const decode = decodeArguments(input)
  return {
    name: "schema",
    title: "Look at the schema",
    description: "Lists tables.",
    input,
    output: Schema.Struct({ objects: Schema.Array(Schema.String) }),
    run: (raw) => Effect.map(decode(raw), () => ({ value: { objects: [] } }))
  }
}
