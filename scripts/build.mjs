// Builds dist/: the command (bundled, so that it starts fast) and the library (modules with types, dependencies external).
// --no-types leaves the library out.
import { execFileSync } from "node:child_process"
import { chmodSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { resolve } from "node:path"
import { build } from "esbuild"
import { budgetWorkbook } from "./BudgetWorkbook.mjs"

const require = createRequire(import.meta.url)
const library = !process.argv.includes("--no-types")

rmSync("dist/chunks", { recursive: true, force: true })
if (library) {
  rmSync("dist", { recursive: true, force: true })
  const tsc = require.resolve("typescript/bin/tsc")
  execFileSync(process.execPath, [tsc, "-p", "tsconfig.build.json"], { stdio: "inherit" })
}

/** Native, or loaded from their own files at run time; protobufjs is named by a part of sketches-js that is not used. */
const external = ["better-sqlite3", "pg-native", "libpg-query", "tedious", "esbuild", "protobufjs/minimal"]

const shared = {
  bundle: true,
  platform: "node",
  target: "node20",
  format: "esm",
  outdir: "dist",
  minifySyntax: true,
  minifyWhitespace: true,
  external,
  legalComments: "none",
  logLevel: "warning",
  // Bundled CommonJS packages call require for Node's own modules.
  banner: {
    js: 'import{createRequire as $createRequire}from"node:module";const require=$createRequire(import.meta.url);'
  }
}

/**
 * The SDK's server loads a JSON Schema validator for asking its client (elicitation), which this server never does:
 * without it the server starts some 13 ms sooner.
 */
const withoutValidator = {
  name: "without-validator",
  setup: ({ onLoad, onResolve }) => {
    onResolve({ filter: /validation\/ajv-provider\.js$/ }, ({ importer }) =>
      /sdk\/dist\/esm\/server\/index\.js$/.test(importer)
        ? { path: "validator", namespace: "without" }
        : undefined
    )
    onLoad({ filter: /.*/, namespace: "without" }, () => ({
      contents: `export class AjvJsonSchemaValidator {
        getValidator() { throw new Error("This server does not ask its client.") }
      }`
    }))
  }
}

/** The demo's database is written with the driver that this Node bears. */
const driver = {
  name: "driver",
  setup: ({ onResolve }) => {
    onResolve({ filter: /^better-sqlite3$/ }, ({ kind }) =>
      kind === "import-statement" ? { path: resolve("src/Adapter/Sqlite/Driver.ts") } : undefined
    )
  }
}

await build({
  ...shared,
  entryPoints: { main: "src/main.ts" },
  plugins: [withoutValidator, driver],
  splitting: true,
  chunkNames: "chunks/[name]-[hash]"
})
// Apart from the server, so that neither starts by reading the other's files.
for (const [name, program] of Object.entries({
  SqliteChild: "src/Adapter/Sqlite/Child.ts",
  ExcelChild: "src/Adapter/Excel/Child.ts"
}))
  await build({ ...shared, entryPoints: { [name]: program } })
chmodSync("dist/main.js", 0o755)
// Made here, so that nobody who installs the command needs what writes workbooks.
writeFileSync("dist/budget.xlsx", await budgetWorkbook())
