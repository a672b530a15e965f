/** The child process that holds one workbook, or one file of delimited text. */
import type { RowSet } from "../../Rows.js"
import { serve } from "../Sqlite/ChildHost.js"
import { Refused } from "../Sqlite/Execute.js"
import type { StatementRequest } from "../Sqlite/Protocol.js"
import { type Book, openWorkbook, Replaced } from "./Book.js"
import { openDelimited } from "./Delimited.js"
import { type Identity, identityOf } from "./File.js"
import { damaged, Problem } from "./Problem.js"
import { Session } from "./Session.js"

export interface ExcelSetup {
  readonly file: string
  readonly engine: "excel" | "csv"
  /** Bound of what the tables may take, in bytes. */
  readonly maxTableBytes: number
}

/** How often a file that changes while it is read is read again. */
const attempts = 4

interface Opened {
  readonly session: Session
  readonly identity: Identity
}

const open = async ({ engine, file, maxTableBytes }: ExcelSetup, identity: Identity): Promise<Opened> => {
  const book: Book = engine === "csv" ? openDelimited(file, identity) : await openWorkbook(file, identity)
  return { session: new Session(book, maxTableBytes), identity }
}

const refusedBy = (error: unknown): unknown =>
  error instanceof Problem ? new Refused({ stage: "open", code: error.code, message: error.message }) : error

/** Errors that leave what was read so far as it is. */
const isAboutStatement = (error: unknown) =>
  error instanceof Refused && error.refusal.stage !== "open" && error.refusal.code !== "SQLITE_FULL"

/** Tables, shared strings and heap together, with room to spare. */
const maxResidentBytes = 1536 * 2 ** 20

const handler = (setup: ExcelSetup) => {
  let opened: Opened | undefined
  const close = () => {
    opened?.session.close()
    opened = undefined
  }
  const answer = async (request: StatementRequest): Promise<RowSet> => {
    for (let attempt = 1; ; attempt++) {
      const identity = identityOf(setup.file)
      if (opened !== undefined && opened.identity !== identity) close()
      try {
        opened ??= await open(setup, identity)
        const rows = await opened.session.run(request)
        // What was read while the file was written may be half of each.
        if (opened.session.takeRead() && identityOf(setup.file) !== identity) throw new Replaced()
        return rows
      } catch (error) {
        if (isAboutStatement(error)) throw error
        close()
        const changed = error instanceof Replaced || identityOf(setup.file) !== identity
        if (changed && attempt < attempts) continue
        throw refusedBy(changed ? damaged("it is being written; it changed each time it was read.") : error)
      }
    }
  }
  return async (request: StatementRequest) =>
    ({ id: request.id, ok: true, rows: await answer(request) }) as const
}

serve(handler, { maxResidentBytes })
