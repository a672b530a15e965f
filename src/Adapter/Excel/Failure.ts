/** The failure table of workbooks: what the child process reports → the typed failure of the call. */
import { type AdapterFailure, ConnectionFailed, QueryFailed } from "../../QueryError.js"
import * as Sqlite from "../Sqlite/Failure.js"
import type { Refusal } from "../Sqlite/Protocol.js"
import type { ProblemCode } from "./Problem.js"

/** What to do about a file that cannot be read. */
export const advice: Readonly<Record<ProblemCode, string>> = {
  WORKBOOK_DAMAGED: "Open it in a spreadsheet program, let that repair it, and save it again.",
  WORKBOOK_TRUNCATED: "Copy or download it again; the file is incomplete.",
  WORKBOOK_HOSTILE: "Save it again with a spreadsheet program if it is to be trusted.",
  WORKBOOK_TOO_LARGE: "Split it, or remove what is not needed.",
  WORKBOOK_EMPTY: "Copy or download it again, or save the workbook again as .xlsx.",
  WORKBOOK_ENCRYPTED: "Open it with its password and save a copy without one.",
  WORKBOOK_XLS: "Open it in Excel or LibreOffice and save it as .xlsx.",
  WORKBOOK_XLSB: "Open it in Excel and save it as .xlsx.",
  WORKBOOK_ODS: "Open it in LibreOffice or Excel and save it as .xlsx.",
  NOT_A_WORKBOOK: "Save it as .xlsx; delimited text can be a source of engine csv.",
  TEXT_UNREADABLE: "Save it as CSV in UTF-8, or name it as a source of engine excel if it is a workbook."
}

const isProblem = (code: string): code is ProblemCode => Object.hasOwn(advice, code)

export type FileKind = "workbook" | "text file"

export const toFailure =
  (kind: FileKind) =>
  (refusal: Refusal): AdapterFailure => {
    const { code, message } = refusal
    if (isProblem(code))
      return new ConnectionFailed({
        reason: "file_unreadable",
        message: `The ${kind} cannot be read: ${message}`,
        hint: advice[code],
        cause: refusal
      })
    if (code === "AMBIGUOUS_TABLE")
      return new QueryFailed({
        reason: "ambiguous_name",
        message,
        hint: "Use a range such as [Sheet!A1:D20] for one of them.",
        engine: { code: "SQLITE_ERROR" },
        cause: refusal
      })
    if (code === "SQLITE_FULL" || code === "SQLITE_NOMEM")
      return new QueryFailed({
        reason: "resource_limit",
        message: `The rows that the statement names need more memory than a ${kind} may take.`,
        hint: "Name a smaller range, say [Sheet$A1:F50000].",
        engine: { code },
        cause: refusal
      })
    return Sqlite.toFailure(refusal, {
      what: kind,
      advice: "Check that the source names the right file."
    })
  }
