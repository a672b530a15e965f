/** What can be wrong with a file, before SQLite has anything to do with it. Plain code: the child process runs it. */

/** Codes of a refusal that `Failure.ts` turns into `connection_failed/file_unreadable`, each with its advice. */
export type ProblemCode =
  | "WORKBOOK_DAMAGED"
  | "WORKBOOK_TRUNCATED"
  | "WORKBOOK_HOSTILE"
  | "WORKBOOK_TOO_LARGE"
  | "WORKBOOK_EMPTY"
  | "WORKBOOK_ENCRYPTED"
  | "WORKBOOK_XLS"
  | "WORKBOOK_XLSB"
  | "WORKBOOK_ODS"
  | "NOT_A_WORKBOOK"
  | "TEXT_UNREADABLE"

/** A file that cannot be read; the message says why, without its path. */
export class Problem extends Error {
  readonly code: ProblemCode
  constructor(code: ProblemCode, message: string) {
    super(message)
    this.code = code
  }
}

export const damaged = (why: string): Problem => new Problem("WORKBOOK_DAMAGED", why)
