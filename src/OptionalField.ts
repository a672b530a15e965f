import * as Schema from "effect/Schema"

/** A field that may be left out, and is never `undefined`. */
export const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })
