import { execFileSync } from "node:child_process"

/** The tests run the built server and child process, so they are built from the sources under test first. */
export default function setup() {
  execFileSync(process.execPath, ["scripts/build.mjs", "--no-types"], { stdio: "inherit" })
}
