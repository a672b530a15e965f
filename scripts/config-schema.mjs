// Writes mcp-query.schema.json from the code. --check only says whether it is stale (exit code 1).
import { readFileSync, writeFileSync } from "node:fs"
import { build } from "esbuild"

const {
  outputFiles: [bundle]
} = await build({
  entryPoints: ["scripts/ConfigSchema.ts"],
  bundle: true,
  write: false,
  platform: "node",
  target: "node20",
  format: "esm"
})
const { configSchema } = await import(
  `data:text/javascript;base64,${Buffer.from(bundle.contents).toString("base64")}`
)
const text = configSchema()
if (!process.argv.includes("--check")) writeFileSync("mcp-query.schema.json", text)
else if (readFileSync("mcp-query.schema.json", "utf8") !== text) {
  console.error("mcp-query.schema.json is stale: run npm run docs:config")
  process.exitCode = 1
}
