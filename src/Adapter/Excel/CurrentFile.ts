/**
 * The file under a path as it is now: opened by the first statement, opened again when it has changed, and read again
 * when it changed while it was read.
 */
import type { RowSet } from "../../Rows.js"
import { Refused } from "../Sqlite/Execute.js"
import type { StatementRequest } from "../Sqlite/Protocol.js"
import { type Book, Replaced } from "./Book.js"
import { type Identity, identityOf } from "./File.js"
import { damaged, Problem } from "./Problem.js"
import { Session } from "./Session.js"

/** How often a file that changes while it is read is read. */
const attempts = 4

interface Opened {
  readonly session: Session
  readonly identity: Identity
}

/** Errors after which what was read so far is as good as before. */
const isAboutStatement = (error: unknown) =>
  error instanceof Refused && error.refusal.stage !== "open" && error.refusal.code !== "SQLITE_FULL"

const refusedBy = (error: unknown): unknown =>
  error instanceof Problem ? new Refused({ stage: "open", code: error.code, message: error.message }) : error

export class CurrentFile {
  readonly #file: string
  readonly #open: (file: string, identity: Identity) => Promise<Book>
  readonly #maxTableBytes: number
  #opened: Opened | undefined

  /** `maxTableBytes` bounds what the tables may take. */
  constructor(
    file: string,
    open: (file: string, identity: Identity) => Promise<Book>,
    maxTableBytes: number
  ) {
    this.#file = file
    this.#open = open
    this.#maxTableBytes = maxTableBytes
  }

  async answer(request: StatementRequest): Promise<RowSet> {
    for (let attempt = 1; ; attempt++) {
      const identity = identityOf(this.#file)
      if (this.#opened?.identity !== identity) this.close()
      try {
        const session = this.#opened?.session ?? (await this.#begin(identity))
        const rows = await session.run(request)
        // What was read while the file was written may be half of each.
        if (session.takeRead() && identityOf(this.#file) !== identity) throw new Replaced()
        return rows
      } catch (error) {
        if (isAboutStatement(error)) throw error
        this.close()
        const changed = error instanceof Replaced || identityOf(this.#file) !== identity
        if (changed && attempt < attempts) continue
        throw refusedBy(changed ? damaged("it is being written: it changed each time it was read.") : error)
      }
    }
  }

  async #begin(identity: Identity): Promise<Session> {
    const session = new Session(await this.#open(this.#file, identity), this.#maxTableBytes)
    this.#opened = { session, identity }
    return session
  }

  close(): void {
    this.#opened?.session.close()
    this.#opened = undefined
  }
}
