/** The config file: its Schema, and the replacement of `${NAME}` by the environment's values. */
import * as Schema from "effect/Schema"
import { SourceEntry } from "./EngineSettings.js"
import { PartialLimits } from "./Limits.js"
import { SourceId } from "./SourceId.js"

export const LogSettings = Schema.Struct({
  level: Schema.optionalWith(
    Schema.Literal("debug", "info", "warn", "error").annotations({
      description: "debug, info, warn or error"
    }),
    { exact: true, default: () => "info" as const }
  ),
  file: Schema.optionalWith(Schema.NullOr(Schema.NonEmptyString), { exact: true, default: () => null }),
  arguments: Schema.optionalWith(
    Schema.Literal("full", "hashed", "none").annotations({ description: "full, hashed or none" }),
    { exact: true, default: () => "full" as const }
  )
})
export type LogSettings = typeof LogSettings.Type

export const ConfigFile = Schema.Struct({
  $schema: Schema.optionalWith(Schema.String, { exact: true }),
  sources: Schema.Record({ key: SourceId, value: SourceEntry }),
  limits: Schema.optionalWith(PartialLimits, { exact: true }),
  log: Schema.optionalWith(LogSettings, { exact: true, default: () => LogSettings.make({}) }),
  structuredContent: Schema.optionalWith(Schema.Boolean, { exact: true, default: () => true })
})
export type ConfigFile = typeof ConfigFile.Type

/** Replaces `${NAME}` in every string; `met` hears of each variable, with its key path and whether it is set. */
export const substitute = (
  value: unknown,
  environment: Record<string, string | undefined>,
  met: (path: ReadonlyArray<PropertyKey>, name: string, isSet: boolean) => void,
  path: ReadonlyArray<PropertyKey> = []
): unknown => {
  if (typeof value === "string")
    return value.replace(/\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g, (_, name: string) => {
      const found = environment[name]
      met(path, name, found !== undefined)
      return found ?? ""
    })
  if (Array.isArray(value))
    return value.map((item, index) => substitute(item, environment, met, [...path, index]))
  if (value !== null && typeof value === "object")
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [key, substitute(item, environment, met, [...path, key])])
    )
  return value
}
