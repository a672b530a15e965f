// Writes a file that is made from the code: `errors` (ERRORS.md) or `config` (mcp-query.schema.json).
// --check only says whether it is stale (exit code 1).
import { readFileSync, writeFileSync } from "node:fs"
import { build } from "esbuild"

const generated = {
  errors: { file: "ERRORS.md", module: "scripts/ErrorsDoc.ts", make: ({ errorsDoc }) => errorsDoc() },
  config: {
    file: "mcp-query.schema.json",
    module: "scripts/ConfigSchema.ts",
    make: ({ configSchema }) => configSchema()
  }
}

const [name = ""] = process.argv.slice(2)
if (!Object.hasOwn(generated, name)) throw new Error(`Expected one of ${Object.keys(generated).join(", ")}.`)
const { file, make, module } = generated[name]
const {
  outputFiles: [bundle]
} = await build({
  entryPoints: [module],
  bundle: true,
  write: false,
  platform: "node",
  target: "node20",
  format: "esm"
})
const text = make(
  await import(`data:text/javascript;base64,${Buffer.from(bundle.contents).toString("base64")}`)
)
if (!process.argv.includes("--check")) writeFileSync(file, text)
else if (readFileSync(file, "utf8") !== text) {
  console.error(`${file} is stale: run npm run docs:${name}`)
  process.exitCode = 1
}
