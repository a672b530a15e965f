/** The child process that holds one SQLite file open, read-only. */
import { accessSync, closeSync, constants, openSync, readFileSync, readSync, statSync } from "node:fs"
import { dirname } from "node:path"
import type Database from "better-sqlite3"
import type { RowSet } from "../../Rows.js"
import { serve } from "./ChildHost.js"
import Driver from "./Driver.js"
import { execute, lockWaitMs, Refused } from "./Execute.js"
import type { SqliteSetup, StatementRequest } from "./Protocol.js"

/** A database whose folder takes no lock files is read into memory; a larger one is refused. */
const inMemoryLimit = 256 * 2 ** 20

interface Opened {
  readonly database: Database.Database
  readonly identity: string
}

const refuse = (code: string, message: string): never => {
  throw new Refused({ stage: "open", code, message })
}

const codeOf = (error: unknown): string =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "UNKNOWN"

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const look = (file: string) => {
  try {
    const stat = statSync(file, { bigint: true })
    if (stat.isDirectory()) return refuse("EISDIR", "It is a folder.")
    if (!stat.isFile()) return refuse("NOT_A_FILE", "It is no regular file.")
    accessSync(file, constants.R_OK)
    return stat
  } catch (error) {
    if (error instanceof Refused) throw error
    return refuse(codeOf(error), messageOf(error))
  }
}

const folderIsWritable = (file: string) => {
  try {
    accessSync(dirname(file), constants.W_OK)
    return true
  } catch {
    return false
  }
}

const sizeOf = (file: string) => {
  try {
    return statSync(file).size
  } catch {
    return 0
  }
}

/** A WAL database needs its lock files; where they cannot be made, its main file alone is read, as a snapshot. */
const openSnapshot = (file: string): Database.Database => {
  if (sizeOf(`${file}-wal`) > 0)
    return refuse(
      "WAL_PENDING",
      "Its write-ahead log holds changes that cannot be read in a read-only folder."
    )
  if (sizeOf(file) > inMemoryLimit)
    return refuse(
      "WAL_TOO_LARGE",
      "It is in WAL mode in a read-only folder and too large to be read into memory."
    )
  const bytes = readFileSync(file)
  // The two version bytes of the header: 2 means WAL, 1 a rollback journal, which needs no lock files for reading.
  bytes[18] = 1
  bytes[19] = 1
  return new Driver(bytes, { readonly: true })
}

const isWal = (file: string) => {
  const header = Buffer.alloc(20)
  const handle = openSync(file, "r")
  try {
    readSync(handle, header, 0, header.length, 0)
  } finally {
    closeSync(handle)
  }
  return header[18] === 2 || header[19] === 2
}

const open = (setup: SqliteSetup, identity: string, lockWait: number): Opened => {
  const { file } = setup
  try {
    const snapshot =
      !folderIsWritable(file) && sizeOf(file) >= 100 && isWal(file) && sizeOf(`${file}-shm`) === 0
    const database = snapshot
      ? openSnapshot(file)
      : new Driver(file, { readonly: true, fileMustExist: true, timeout: lockWait })
    // The first look at it makes the temporary schema; no call shall find another one than the call before.
    database.prepare("select count(*) from temp.sqlite_schema").get()
    return { database, identity }
  } catch (error) {
    if (error instanceof Refused) throw error
    return refuse(codeOf(error), messageOf(error))
  }
}

/**
 * Bound of the whole process, a snapshot included. SQLite's own `hard_heap_limit` counts nothing in this driver, which is
 * built without memory statistics.
 */
const maxResidentBytes = 640 * 2 ** 20

/** Failures that say something about the file, or about how it differs from the one that was opened. */
const isOfFile = (error: unknown): boolean =>
  error instanceof Refused &&
  (/^SQLITE_(CORRUPT|IOERR|NOTADB)/.test(error.refusal.code) ||
    /must use the same text encoding/.test(error.refusal.message))

serve<SqliteSetup>(
  (setup) => {
    let opened: Opened | undefined
    const current = (lockWait: number): Database.Database => {
      const stat = look(setup.file)
      // Another file under the same name is another database. So may be one that was written over in place: its counter
      // of changes can be the same by chance, and SQLite would go on with the pages that it has kept.
      const identity = `${stat.dev}:${stat.ino}:${stat.mtimeNs}:${stat.size}`
      if (opened?.identity !== identity) {
        close()
        opened = open(setup, identity, lockWait)
      }
      return opened.database
    }
    const close = () => {
      opened?.database.close()
      opened = undefined
    }
    const run = (request: StatementRequest, again: boolean): RowSet => {
      try {
        return execute(current(lockWaitMs(request)), request)
      } catch (error) {
        // What was kept of a file that was written over is of no use for what stands there now.
        if (!isOfFile(error) || opened === undefined) throw error
        close()
        if (!again) throw error
        return run(request, false)
      }
    }
    return (request) => ({ id: request.id, ok: true, rows: run(request, true) })
  },
  { maxResidentBytes }
)
