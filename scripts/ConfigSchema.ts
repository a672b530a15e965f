/** The config file's JSON Schema, with which editors complete and check it. */
import * as JSONSchema from "effect/JSONSchema"
import { ConfigFile } from "../src/Settings/ConfigFile.js"

export const configSchema = (): string => {
  const { $schema, ...schema } = JSONSchema.make(ConfigFile, { target: "jsonSchema7" })
  return `${JSON.stringify({ $schema, title: "mcp-query config file", ...schema }, null, 2)}\n`
}
