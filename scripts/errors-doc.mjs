// Writes ERRORS.md from the code. --check only says whether it is stale (exit code 1).
import { readFileSync, writeFileSync } from "node:fs"
import { build } from "esbuild"

const {
  outputFiles: [bundle]
} = await build({
  entryPoints: ["scripts/ErrorsDoc.ts"],
  bundle: true,
  write: false,
  platform: "node",
  target: "node20",
  format: "esm"
})
const { errorsDoc } = await import(
  `data:text/javascript;base64,${Buffer.from(bundle.contents).toString("base64")}`
)
const text = errorsDoc()
if (!process.argv.includes("--check")) writeFileSync("ERRORS.md", text)
else if (readFileSync("ERRORS.md", "utf8") !== text) {
  console.error("ERRORS.md is stale: run npm run docs:errors")
  process.exitCode = 1
}
