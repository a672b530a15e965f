/** What a source may be called. */
import * as Schema from "effect/Schema"

export const SourceId = Schema.String.pipe(Schema.pattern(/^[a-z0-9_]+$/)).annotations({
  description: "an id of a-z, 0-9 and _"
})
