/** Answers of the tool `schema`, held against the whole of what Catalog.ts says of them. */
import * as Schema from "effect/Schema"
import { type SchemaObject, SchemaResult } from "../../src/SchemaResult.js"
import { type Answer, valueOf } from "./Answer.js"

const decode = Schema.decodeUnknownSync(SchemaResult, { onExcessProperty: "error", errors: "all" })

export const schemaOf = (answer: Answer): SchemaResult => decode(valueOf(answer))

/** The only object of an answer. */
export const objectOf = ({ objects = [] }: SchemaResult): SchemaObject => {
  const [first, ...others] = objects
  if (first === undefined || others.length > 0) throw new Error(`${objects.length} objects came`)
  return first
}

/** Columns as short texts: `id integer not null`. */
export const columnTexts = ({ columns }: SchemaObject): ReadonlyArray<string> =>
  columns.map(({ name, nullable, type }) =>
    [name, type, nullable === false ? "not null" : undefined].filter((text) => text !== undefined).join(" ")
  )
