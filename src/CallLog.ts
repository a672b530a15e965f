/** The log: one JSON object a line, one line a call. Known secrets are removed from everything that passes. */
import { createHash } from "node:crypto"
import { closeSync, openSync, writeSync } from "node:fs"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as LogLevel from "effect/LogLevel"
import * as Schema from "effect/Schema"
import type { Scope } from "effect/Scope"
import { FatalError } from "./FatalError.js"
import { optional } from "./OptionalField.js"
import type { OutputStream } from "./OutputStream.js"
import type { LogSettings } from "./Settings/ConfigFile.js"

export const Level = Schema.Literal("debug", "info", "warn", "error")
export type Level = typeof Level.Type

const base = {
  time: Schema.String,
  level: Level,
  /** Lines before this one that were lost, because nobody took them. */
  droppedLines: optional(Schema.Number)
}

/** The line that a tool call leaves. */
export const CallEntry = Schema.Struct({
  ...base,
  event: Schema.Literal("tool_call"),
  correlationId: Schema.String,
  /** The JSON-RPC request's id. */
  requestId: Schema.Union(Schema.String, Schema.Number),
  tool: Schema.String,
  source: optional(Schema.String),
  /** As they came, or their hash, or absent: see `log.arguments`. */
  arguments: optional(Schema.Unknown),
  durationMs: Schema.Number,
  outcome: Schema.Literal("succeeded", "failed", "cancelled"),
  /** Above 1: tried again after a lost connection. */
  attempts: Schema.Number,
  rowCount: optional(Schema.Number),
  truncated: optional(Schema.Boolean),
  /** Size of the answer's text block. */
  bytes: optional(Schema.Number),
  category: optional(Schema.String),
  reason: optional(Schema.String),
  /** The driver's own error; of a defect, with its stack. */
  cause: optional(Schema.Unknown)
})
export type CallEntry = typeof CallEntry.Type

/** Any other line. */
export const EventEntry = Schema.Struct(
  { ...base, event: Schema.String.pipe(Schema.filter((event) => event !== "tool_call")) },
  Schema.Record({ key: Schema.String, value: Schema.Unknown })
)
export type EventEntry = typeof EventEntry.Type

export const LogEntry = Schema.Union(CallEntry, EventEntry)
export type LogEntry = typeof LogEntry.Type

export type EventName =
  | "server_started"
  | "server_stopped"
  | "source_connected"
  | "source_lost"
  | "source_recovered"
  /** An unforeseen fault that ends the process. Those of a configuration are told before there is a log. */
  | "fatal"
  /** Something that wrote to the console, or Effect's own logger. */
  | "message"
  /** A fault outside of any call. */
  | "uncaught"

export interface CallLogService {
  readonly call: (entry: Omit<CallEntry, "time" | "level" | "event">) => Effect.Effect<void>
  readonly event: (level: Level, event: EventName, fields?: Record<string, unknown>) => Effect.Effect<void>
}

/** A log that code outside of Effect can write to as well: console capture and process events. */
export interface ProcessLog extends CallLogService {
  readonly unsafeEvent: (level: Level, event: EventName, fields?: Record<string, unknown>) => void
}

/** Where the lines go. An application that provides none gets them through Effect's own logger. */
export class CallLog extends Context.Reference<CallLog>()("mcp-query/CallLog", {
  defaultValue: () => fromLogger([])
}) {}

const rank: Record<Level, number> = { debug: 0, info: 1, warn: 2, error: 3 }

/** A log that nobody reads keeps at most this much in memory; what comes beyond is counted and dropped. */
const maxPendingBytes = 8 * 2 ** 20

const removed = "[secret]"

/** A secret as it is, and as it stands in URLs; one with half of a surrogate pair cannot stand there. */
const formsOf = (secret: string): ReadonlyArray<string> =>
  /\p{Cs}/u.test(secret) ? [secret] : [secret, encodeURIComponent(secret), encodeURI(secret)]

/** Replaces each secret in a text, as it is and as it stands in URLs. */
export const redactor = (secrets: ReadonlyArray<string>): ((text: string) => string) => {
  const forms = [...new Set(secrets.flatMap(formsOf))]
    // A shorter one would stand in half of all texts.
    .filter((form) => form.length >= 3)
    .sort((a, b) => b.length - a.length)
  return (text) => forms.reduce((result, form) => result.replaceAll(form, removed), text)
}

const maxDepth = 64

/** A copy that JSON can hold, whatever the value is: errors with their own fields, no cycles, no secrets. */
const plain = (
  value: unknown,
  redact: (text: string) => string,
  // Errors of drivers may hold half of the program, and that in circles: each object is told once.
  seen = new Set<object>(),
  depth = 0
): unknown => {
  if (typeof value === "string") return redact(value)
  if (typeof value === "bigint" || typeof value === "symbol" || typeof value === "function")
    return String(value)
  if (value === null || typeof value !== "object") return value
  if (depth >= maxDepth) return "[deeper]"
  if (seen.has(value)) return "[told above]"
  seen.add(value)
  if (value instanceof Error) {
    const own = Object.entries(value).filter(
      ([key]) => key !== "name" && key !== "message" && key !== "stack"
    )
    return {
      name: value.name,
      message: redact(value.message),
      ...Object.fromEntries(own.map(([key, item]) => [key, plain(item, redact, seen, depth + 1)])),
      ...(value.cause === undefined ? {} : { cause: plain(value.cause, redact, seen, depth + 1) }),
      stack: redact(value.stack ?? "")
    }
  }
  if (value instanceof Uint8Array) return `[${value.length} bytes]`
  if (Array.isArray(value)) return value.map((item) => plain(item, redact, seen, depth + 1))
  const entries = Object.entries(value).map(
    ([key, item]) => [redact(key), plain(item, redact, seen, depth + 1)] as const
  )
  return Object.fromEntries(entries)
}

const hash = (value: unknown) =>
  `sha256:${createHash("sha256")
    .update(JSON.stringify(value) ?? "")
    .digest("hex")}`

const logLevels: Record<Level, LogLevel.LogLevel> = {
  debug: LogLevel.Debug,
  info: LogLevel.Info,
  warn: LogLevel.Warning,
  error: LogLevel.Error
}

const levelOf = ({ category, outcome }: Pick<CallEntry, "category" | "outcome">): Level =>
  outcome === "failed" && category === "internal_error" ? "error" : "info"

/** A log whose lines go through Effect's logger: the event is the message, the rest stands in annotations. */
export const fromLogger = (secrets: ReadonlyArray<string>): CallLogService => {
  const redact = redactor(secrets)
  const say = (level: Level, name: string, fields: Record<string, unknown> = {}) =>
    Effect.annotateLogs(
      Effect.logWithLevel(logLevels[level], name),
      Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, plain(value, redact)]))
    )
  return {
    call: (entry) => say(levelOf(entry), "tool_call", entry),
    event: say
  }
}

interface Sink {
  readonly write: (line: string) => void
  readonly pending: () => number
}

/** A log whose lines go to `sink`. */
export const fromSink = (settings: LogSettings, secrets: ReadonlyArray<string>, sink: Sink): ProcessLog => {
  const redact = redactor(secrets)
  let dropped = 0
  const write = (level: Level, fields: Record<string, unknown>) => {
    if (rank[level] < rank[settings.level]) return
    if (sink.pending() > maxPendingBytes) {
      dropped++
      return
    }
    const lost = dropped > 0 ? { droppedLines: dropped } : {}
    dropped = 0
    const { event, ...rest } = fields
    const line = { time: new Date().toISOString(), level, event, ...lost, ...rest }
    sink.write(`${JSON.stringify(plain(line, redact))}\n`)
  }
  const argumentsOf = (value: unknown) => {
    switch (settings.arguments) {
      case "full":
        return { arguments: value }
      case "hashed":
        return { arguments: hash(plain(value, redact)) }
      case "none":
        return {}
    }
  }
  const unsafeEvent: ProcessLog["unsafeEvent"] = (level, event, fields = {}) =>
    write(level, { event, ...fields })
  return {
    call: ({ arguments: raw, ...entry }) =>
      Effect.sync(() => {
        const { correlationId, requestId, source, tool, ...outcome } = entry
        write(levelOf(entry), {
          event: "tool_call",
          correlationId,
          requestId,
          tool,
          ...(source === undefined ? {} : { source }),
          ...argumentsOf(raw),
          ...outcome
        })
      }),
    event: (level, event, fields) => Effect.sync(() => unsafeEvent(level, event, fields)),
    unsafeEvent
  }
}

const openFile = (file: string): Effect.Effect<Sink, FatalError, Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.try({
        try: () => openSync(file, "a", 0o600),
        catch: (error) =>
          new FatalError({
            problems: [
              {
                where: "log.file",
                expected: "a file that can be written",
                found: error instanceof Error && "code" in error ? String(error.code) : "none"
              }
            ]
          })
      }),
      (fd) => Effect.sync(() => closeSync(fd))
    ),
    (fd): Sink => ({
      write: (line) => {
        try {
          writeSync(fd, line)
        } catch {
          // A full disk must not fail a call.
        }
      },
      pending: () => 0
    })
  )

/** The log that the settings ask for: their file, or `stderr`. */
export const make = (
  settings: LogSettings,
  secrets: ReadonlyArray<string>,
  stderr: OutputStream
): Effect.Effect<ProcessLog, FatalError, Scope> =>
  Effect.map(settings.file === null ? Effect.succeed<Sink>(stderr) : openFile(settings.file), (sink) =>
    fromSink(settings, secrets, sink)
  )
