/** Folders and database files for tests, gone when the test file that asked for them is done. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll } from "vitest"
import Driver from "../../src/Adapter/Sqlite/Driver.js"

/** A new empty folder; to be asked for where a test file is collected. */
export const folder = (): string => {
  const path = mkdtempSync(join(tmpdir(), "mcp-query-test-"))
  afterAll(() => rmSync(path, { recursive: true, force: true }))
  return path
}

/** Runs `statements` on the SQLite database `file`, which is made where it does not exist. */
export const fill = (file: string, ...statements: ReadonlyArray<string>): string => {
  const database = new Driver(file)
  try {
    for (const sql of statements) database.exec(sql)
  } finally {
    database.close()
  }
  return file
}

/** Makes `file` a database that another process holds locked until the returned function is called. */
export const lock = (file: string): (() => void) => {
  const database = new Driver(file)
  database.exec("begin exclusive")
  return () => {
    database.exec("rollback")
    database.close()
  }
}

/** Whether some other process is reading `file` at this moment. The file must have a rollback journal. */
export const isBeingRead = (file: string): boolean => {
  const database = new Driver(file, { timeout: 0 })
  try {
    database.exec("begin exclusive")
    database.exec("rollback")
    return false
  } catch (error) {
    if (error instanceof Driver.SqliteError && error.code === "SQLITE_BUSY") return true
    throw error
  } finally {
    database.close()
  }
}
