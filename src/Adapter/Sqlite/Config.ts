/** What an SQLite source needs to be named with. No driver is imported here. */
import * as Schema from "effect/Schema"

export class Config extends Schema.Class<Config>("SqliteConfig")({
  /** Path of the database file. It is opened read-only and never created. */
  file: Schema.NonEmptyString,
  /** How many statements may run at once, each in a process of its own. */
  maxConcurrent: Schema.optionalWith(Schema.Number.pipe(Schema.int(), Schema.positive()), {
    default: () => 4
  })
}) {}
