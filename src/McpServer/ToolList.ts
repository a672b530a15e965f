/** The answer to tools/list: each tool's Schemas as JSON Schema, without what no client needs. */
import * as JSONSchema from "effect/JSONSchema"
import type { Tool } from "../Tool.js"

const annotations = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: false
} as const

type Json = Record<string, unknown>

/** Keywords that say the same as the description beside them, which is there for error messages. */
const spoken = ["enum", "minimum", "minLength"]

/** Words that say nothing beyond the keyword beside them, or that only a top-level schema may have. */
const isNoise = (key: string, value: unknown, beside: object) =>
  key === "$schema" ||
  key === "$id" ||
  key === "title" ||
  (key === "required" && Array.isArray(value) && value.length === 0) ||
  (key === "description" &&
    typeof value === "string" &&
    (/^(a|an) (string|number|boolean|non empty)/i.test(value) || spoken.some((word) => word in beside)))

const strip = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(strip)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, item]) => {
      // Under `properties` a key is a name of the data.
      if (key === "properties" && typeof item === "object" && item !== null)
        return Object.keys(item).length === 0
          ? []
          : [[key, Object.fromEntries(Object.entries(item).map(([name, schema]) => [name, strip(schema)]))]]
      return isNoise(key, item, value) ? [] : [[key, strip(item)]]
    })
  )
}

const jsonSchema = (schema: Tool["input"]): Json => ({ ...(strip(JSONSchema.make(schema)) as Json) })

export interface ListedTool {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly inputSchema: Json
  readonly outputSchema?: Json
  readonly annotations: typeof annotations
}

export const make = (tools: ReadonlyArray<Tool>, structuredContent: boolean): ReadonlyArray<ListedTool> =>
  tools.map(({ description, input, name, output, title }) => ({
    name,
    title,
    description,
    inputSchema: jsonSchema(input),
    ...(structuredContent ? { outputSchema: jsonSchema(output) } : {}),
    annotations
  }))
