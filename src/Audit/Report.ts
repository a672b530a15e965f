/** What an audit of call logs finds out: the form that `--json` prints and that text and HTML are made of. */
import * as Schema from "effect/Schema"

/** Milliseconds. Percentiles are within 1 % of the true ones; the maximum is exact. */
export const Latency = Schema.Struct({
  p50: Schema.Number,
  p95: Schema.Number,
  p99: Schema.Number,
  max: Schema.Number
})
export type Latency = typeof Latency.Type

const counted = {
  calls: Schema.Number,
  /** Calls that were tried more than once. */
  retried: Schema.Number,
  /** Absent where no call ended. */
  latency: Schema.NullOr(Latency)
}

/** Calls of one tool on one source with one outcome. */
export const Group = Schema.Struct({
  tool: Schema.String,
  source: Schema.NullOr(Schema.String),
  outcome: Schema.Literal("succeeded", "failed", "cancelled"),
  /** Of failures. */
  category: Schema.NullOr(Schema.String),
  ...counted
})
export type Group = typeof Group.Type

/** Failures for one reason. */
export const Failures = Schema.Struct({
  category: Schema.String,
  reason: Schema.String,
  calls: Schema.Number,
  sources: Schema.Array(Schema.String),
  /** The last of them, to look it up in the log. */
  lastTime: Schema.String,
  lastCorrelationId: Schema.String
})
export type Failures = typeof Failures.Type

/** A statement by its slowest call. */
export const Statement = Schema.Struct({
  tool: Schema.String,
  source: Schema.NullOr(Schema.String),
  /** The SQL, cut when it is long, or its hash where the log keeps hashes. */
  statement: Schema.String,
  calls: Schema.Number,
  /** False where earlier, faster calls may be missing in `calls`, because the log has very many statements. */
  callsAreExact: Schema.Boolean,
  failed: Schema.Number,
  maxMs: Schema.Number,
  meanMs: Schema.Number,
  slowestTime: Schema.String,
  slowestCorrelationId: Schema.String
})
export type Statement = typeof Statement.Type

/** Calls that ended within `[from, from + widthMs)`. */
export const Interval = Schema.Struct({
  from: Schema.String,
  widthMs: Schema.Number,
  failed: Schema.Number,
  ...counted
})
export type Interval = typeof Interval.Type

/** A line that is no entry of a call log. */
export const Undecodable = Schema.Struct({
  file: Schema.String,
  line: Schema.Number,
  why: Schema.String,
  /** How the line begins. */
  text: Schema.String
})
export type Undecodable = typeof Undecodable.Type

export const Event = Schema.Struct({
  event: Schema.String,
  source: Schema.NullOr(Schema.String),
  count: Schema.Number,
  lastTime: Schema.String
})
export type Event = typeof Event.Type

export const Report = Schema.Struct({
  files: Schema.Array(Schema.String),
  bytes: Schema.Number,
  lines: Schema.Number,
  /** Entries before it were left out. */
  since: Schema.NullOr(Schema.String),
  /** Times of the first and the last entry that counted. */
  first: Schema.NullOr(Schema.String),
  last: Schema.NullOr(Schema.String),
  succeeded: Schema.Number,
  failed: Schema.Number,
  cancelled: Schema.Number,
  ...counted,
  groups: Schema.Array(Group),
  failures: Schema.Array(Failures),
  slowest: Schema.Array(Statement),
  intervals: Schema.Array(Interval),
  events: Schema.Array(Event),
  /** Lines that the server itself dropped, because nobody read its log. */
  droppedLines: Schema.Number,
  undecodable: Schema.Struct({ lines: Schema.Number, first: Schema.Array(Undecodable) })
})
export type Report = typeof Report.Type
