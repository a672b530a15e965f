/** Root reads and writes whatever it likes; a server whose rights are to matter must not run as root does. */
import { execFileSync } from "node:child_process"
import { chmodSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

/** Without capabilities, root is held to a file's permissions like anyone else. */
const candidates: ReadonlyArray<ReadonlyArray<string>> = [
  [],
  ["setpriv", "--bounding-set=-all", "--inh-caps=-all"],
  ["capsh", "--drop=all", "--", "-c", 'exec "$0" "$@"']
]

/** The words to put before a command, or undefined where this machine offers no way. */
export const withoutPrivileges = (): ReadonlyArray<string> | undefined => {
  const file = join(tmpdir(), `mcp-query-test-${process.pid}-unreadable`)
  writeFileSync(file, "")
  chmodSync(file, 0)
  const code = `try{require("fs").readFileSync(${JSON.stringify(file)});process.exit(1)}catch{}`
  try {
    return candidates.find((prefix) => {
      const [command = process.execPath, ...rest] = [...prefix, process.execPath, "-e", code]
      try {
        execFileSync(command, rest, { stdio: "ignore" })
        return true
      } catch {
        return false
      }
    })
  } finally {
    rmSync(file)
  }
}
