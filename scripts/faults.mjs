// Builds the server and the fault campaign (test/faults) and runs it with the given arguments.
import { execFileSync, spawnSync } from "node:child_process"
import { mkdirSync, rmSync } from "node:fs"
import { build } from "esbuild"

execFileSync(process.execPath, ["scripts/build.mjs", "--no-types"], { stdio: "inherit" })
const folder = "node_modules/.cache/mcp-query"
const outfile = `${folder}/faults-${process.pid}.mjs`
mkdirSync(folder, { recursive: true })
await build({
  entryPoints: ["test/faults/main.ts"],
  outfile,
  bundle: true,
  packages: "external",
  platform: "node",
  target: "node20",
  format: "esm",
  sourcemap: "inline"
})
try {
  const { status } = spawnSync(
    process.execPath,
    ["--enable-source-maps", outfile, ...process.argv.slice(2)],
    {
      stdio: "inherit"
    }
  )
  process.exitCode = status ?? 1
} finally {
  rmSync(outfile, { force: true })
}
