/** The child process that holds one workbook, or one file of delimited text. */
import { serve } from "../Sqlite/ChildHost.js"
import { openWorkbook } from "./Book.js"
import type { ExcelSetup } from "./Config.js"
import { CurrentFile } from "./CurrentFile.js"
import { openDelimited } from "./Delimited.js"

/** Tables, shared strings and heap together, with room to spare. */
const maxResidentBytes = 1536 * 2 ** 20

serve<ExcelSetup>(
  ({ engine, file, maxTableBytes }) => {
    const current = new CurrentFile(file, engine === "csv" ? openDelimited : openWorkbook, maxTableBytes)
    return async (request) => ({ id: request.id, ok: true, rows: await current.answer(request) })
  },
  { maxResidentBytes }
)
