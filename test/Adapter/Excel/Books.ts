/** Workbooks for tests: small ones part by part, others as ExcelJS writes them. */
import { writeFileSync } from "node:fs"
import ExcelJS from "exceljs"
import { type Parts, parts } from "./Parts.js"
import { zip } from "./Zip.js"

/** Writes a workbook of these parts to `file`. */
export const writeParts = (file: string, book: Parts): string => {
  writeFileSync(file, zip(parts(book)))
  return file
}

/** Writes what `fill` puts into a new workbook to `file`. */
export const writeBook = async (file: string, fill: (book: ExcelJS.Workbook) => void): Promise<string> => {
  const book = new ExcelJS.Workbook()
  fill(book)
  await book.xlsx.writeFile(file)
  return file
}
