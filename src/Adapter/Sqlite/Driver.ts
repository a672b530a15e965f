/**
 * SQLite's driver. Its version 12 runs on Node 20, but on Node 24.19 and later the process ends when one of its objects
 * is collected outside of JavaScript; version 13 stands on Node-API, which knows no such thing, and needs Node 22.
 */
import { createRequire } from "node:module"
import type Database from "better-sqlite3"

const require = createRequire(import.meta.url)

const isMissing = (error: unknown) =>
  error instanceof Error && "code" in error && error.code === "MODULE_NOT_FOUND"

const load = (): typeof Database => {
  if (Number.parseInt(process.versions.node, 10) >= 22)
    try {
      return require("better-sqlite3-13")
    } catch (error) {
      // Whoever installs without optional dependencies has version 12 alone.
      if (!isMissing(error)) throw error
    }
  return require("better-sqlite3")
}

const Driver: typeof Database = load()
export default Driver
