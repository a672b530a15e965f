/** The limits of a source, with their defaults and bounds. */
import * as Schema from "effect/Schema"

const between = (least: number, most: number, what: string) =>
  Schema.Number.pipe(Schema.int(), Schema.between(least, most)).annotations({
    description: `${what} (${least} to ${most})`
  })

const fields = {
  maxRows: between(1, 1_000_000, "rows in an answer"),
  maxBytes: between(100, 256 * 2 ** 20, "bytes of an answer's rows as JSON"),
  maxCellBytes: between(16, 64 * 2 ** 20, "bytes of one cell"),
  timeoutMs: between(1, 3_600_000, "milliseconds until a call is stopped"),
  connectTimeoutMs: between(1, 600_000, "milliseconds to connect"),
  maxConcurrent: between(1, 64, "calls of one source that run at once")
}

/** Limits as a configuration gives them: any of them. */
export const PartialLimits = Schema.Struct({
  maxRows: Schema.optionalWith(fields.maxRows, { exact: true }),
  maxBytes: Schema.optionalWith(fields.maxBytes, { exact: true }),
  maxCellBytes: Schema.optionalWith(fields.maxCellBytes, { exact: true }),
  timeoutMs: Schema.optionalWith(fields.timeoutMs, { exact: true }),
  connectTimeoutMs: Schema.optionalWith(fields.connectTimeoutMs, { exact: true }),
  maxConcurrent: Schema.optionalWith(fields.maxConcurrent, { exact: true })
})
export type PartialLimits = typeof PartialLimits.Type

export const Limits = Schema.Struct(fields)
export type Limits = typeof Limits.Type

export const defaultLimits: Limits = {
  maxRows: 1000,
  maxBytes: 100_000,
  maxCellBytes: 16_384,
  timeoutMs: 30_000,
  connectTimeoutMs: 5000,
  maxConcurrent: 4
}
