/** Workbooks that ExcelJS writes are read back as they were meant. */
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import ExcelJS from "exceljs"
import fc from "fast-check"
import * as Excel from "../../../src/Adapter/Excel.js"
import { folder } from "../../support/Folder.js"
import { query } from "./Ask.js"
import { writeBook } from "./Books.js"

const place = folder()
let count = 0
const newFile = () => join(place, `${++count}.xlsx`)

/** A cell as ExcelJS takes it, and as an answer is to have it. */
interface Model {
  readonly written: ExcelJS.CellValue
  readonly format?: string
  readonly read: unknown
}

/** ExcelJS writes characters that XML cannot hold, and reads `_xHHHH_` as text. */
const plainText = fc
  .string({ unit: "grapheme", minLength: 1, maxLength: 30 })
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are meant
  .filter((text) => !/[\u0000-\u001f\ufffe\uffff]|_x[0-9a-f]{4}_/i.test(text))

/** Whole numbers that the file writes digit by digit keep their digits. */
const readNumber = (n: number) =>
  n === 0 ? 0 : Number.isInteger(n) && !Number.isSafeInteger(n) && Math.abs(n) < 1e21 ? String(n) : n

const day = fc.integer({ min: 61, max: 2_958_465 })
const dayMs = 86_400_000
const epoch = Date.UTC(1899, 11, 30)

const cell: fc.Arbitrary<Model> = fc.oneof(
  fc.constant<Model>({ written: null, read: null }),
  fc.maxSafeInteger().map((n): Model => ({ written: n, read: n })),
  fc
    .double({ noNaN: true, noDefaultInfinity: true })
    .map((n): Model => ({ written: n, read: readNumber(n) })),
  plainText.map((text): Model => ({ written: text, read: text })),
  fc
    .array(plainText, { minLength: 1, maxLength: 3 })
    .map((runs): Model => ({ written: { richText: runs.map((text) => ({ text })) }, read: runs.join("") })),
  fc.boolean().map((flag): Model => ({ written: flag, read: flag ? 1 : 0 })),
  day.map(
    (n): Model => ({
      written: new Date(epoch + n * dayMs),
      format: "dd/mm/yyyy",
      read: new Date(epoch + n * dayMs).toISOString().slice(0, 10)
    })
  ),
  fc.integer({ min: 0, max: 200_000 }).map(
    (seconds): Model => ({
      written: seconds / 86_400,
      format: "[h]:mm:ss",
      read: [seconds / 3600, (seconds / 60) % 60, seconds % 60]
        .map((part) => String(Math.floor(part)).padStart(2, "0"))
        .join(":")
    })
  ),
  fc.integer().map((n): Model => ({ written: { formula: "1+1", result: n }, read: n })),
  plainText.map((text): Model => ({ written: { formula: '"a"', result: text }, read: text })),
  fc.constant<Model>({ written: { formula: "NOW()" } as ExcelJS.CellFormulaValue, read: null }),
  fc
    .constantFrom("#N/A", "#DIV/0!", "#REF!")
    .map((error): Model => ({ written: { error } as ExcelJS.CellErrorValue, read: null }))
)

const fill = (sheet: ExcelJS.Worksheet, rows: ReadonlyArray<ReadonlyArray<Model>>) => {
  rows.forEach((cells, row) => {
    cells.forEach(({ format, written }, column) => {
      const place = sheet.getCell(row + 1, column + 1)
      place.value = written
      if (format !== undefined) place.numFmt = format
    })
  })
}

const answer = (file: string, sql: string) =>
  Effect.scoped(Effect.flatMap(Excel.make(new Excel.Config({ file })), (adapter) => query(adapter, sql)))

describe("what ExcelJS writes", () => {
  it("cells of every kind, anywhere", async () => {
    const rows = fc
      .integer({ min: 1, max: 8 })
      .chain((width) =>
        fc.array(fc.array(cell, { minLength: width, maxLength: width }), { minLength: 1, maxLength: 12 })
      )
    // One workbook with a sheet for each example, so that one child reads them all.
    const examples = fc.sample(rows, 60)
    const file = await writeBook(newFile(), (book) => {
      examples.forEach((example, at) => {
        fill(book.addWorksheet(`S${at}`), example)
      })
    })
    await Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const adapter = yield* Excel.make(new Excel.Config({ file }))
          for (const [at, example] of examples.entries()) {
            const width = example[0]?.length ?? 0
            const range = `[S${at}!A1:${String.fromCharCode(64 + width)}${example.length}]`
            const { rows: got } = yield* query(adapter, `select rowid, * from ${range}`)
            const byRow = new Map(got.map(([number, ...cells]) => [number, cells]))
            example.forEach((cells, row) => {
              const wanted = cells.map(({ read }) => read)
              const seen = byRow.get(row + 1)
              // Rows outside the used area are not there.
              if (seen === undefined) {
                expect(wanted.every((value) => value === null)).toBe(true)
                return
              }
              // A column of booleans alone answers booleans; elsewhere SQLite has 1 and 0.
              const plain = seen.map((value) => (typeof value === "boolean" ? Number(value) : value))
              expect(plain, JSON.stringify([plain, wanted])).toEqual(wanted)
            })
          }
        })
      )
    )
  })

  it("a header, columns of one kind, and where they stand", async () => {
    const kinds = {
      INTEGER: fc.maxSafeInteger().map((n): Model => ({ written: n, read: n })),
      REAL: fc.double({ min: 0.001, max: 0.999, noNaN: true }).map((n): Model => ({ written: n, read: n })),
      TEXT: plainText.map((text): Model => ({ written: text, read: text })),
      BOOLEAN: fc.boolean().map((flag): Model => ({ written: flag, read: flag }))
    }
    const type = fc.constantFrom("INTEGER", "REAL", "TEXT", "BOOLEAN" as const)
    const columns = fc.array(type, { minLength: 1, maxLength: 5 })
    const tables = fc
      .tuple(columns, fc.nat(5), fc.nat(3), fc.integer({ min: 1, max: 30 }))
      .chain(([types, top, left, rows]) =>
        fc.tuple(
          fc.constant({ types, top, left }),
          fc.array(fc.tuple(...types.map((each) => kinds[each as keyof typeof kinds])), {
            minLength: rows,
            maxLength: rows
          })
        )
      )
    const examples = fc.sample(tables, 40)
    const file = await writeBook(newFile(), (book) => {
      examples.forEach(([{ left, top, types }, rows], at) => {
        const sheet = book.addWorksheet(`S${at}`)
        types.forEach((each, column) => {
          sheet.getCell(top + 1, left + column + 1).value = `${each} ${column}`
        })
        rows.forEach((cells, row) => {
          cells.forEach(({ written }, column) => {
            sheet.getCell(top + row + 2, left + column + 1).value = written
          })
        })
      })
    })
    await Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const adapter = yield* Excel.make(new Excel.Config({ file }))
          for (const [at, [{ top, types }, rows]] of examples.entries()) {
            const result = yield* query(adapter, `select rowid, * from S${at}`)
            expect(result.columns).toEqual(["rowid", ...types.map((each, column) => `${each} ${column}`)])
            expect(result.columnTypes).toEqual(["INTEGER", ...types])
            expect(result.rows).toEqual(
              rows.map((cells, row) => [top + row + 2, ...cells.map(({ read }) => read)])
            )
            const facts = yield* query(
              adapter,
              `select "rows", columns, header_row from xl_sheets where name = 'S${at}'`
            )
            expect(facts.rows).toEqual([[rows.length, types.length, top + 1]])
          }
        })
      )
    )
  })

  it("its streaming writer, with and without shared strings", async () => {
    for (const useSharedStrings of [true, false]) {
      const file = newFile()
      const book = new ExcelJS.stream.xlsx.WorkbookWriter({ filename: file, useSharedStrings })
      const sheet = book.addWorksheet("Data")
      sheet.addRow(["id", "text"]).commit()
      for (let n = 1; n <= 5000; n++) sheet.addRow([n, `text ${n % 7} <&> é😀`]).commit()
      await book.commit()
      const { rows } = await Effect.runPromise(
        answer(file, "select count(*), count(distinct text), sum(id), max(text) from Data")
      )
      expect(rows).toEqual([[5000, 7, 12_502_500, "text 6 <&> é😀"]])
    }
  })

  it("tables, names and hidden sheets", async () => {
    const file = await writeBook(newFile(), (book) => {
      const sheet = book.addWorksheet("Stock")
      sheet.addTable({
        name: "Items",
        ref: "B3",
        headerRow: true,
        totalsRow: true,
        columns: [
          { name: "Item", totalsRowLabel: "Total" },
          { name: "Qty", totalsRowFunction: "sum" }
        ],
        rows: [
          ["pen", 3],
          ["ink", 5]
        ]
      })
      book.addWorksheet("Secret", { state: "veryHidden" }).addRow(["a"])
      book.definedNames.add("Stock!$B$3:$C$5", "Area")
    })
    const ask = (sql: string) => Effect.runPromise(answer(file, sql))
    expect((await ask("select rowid, * from Items")).rows).toEqual([
      [4, "pen", 3],
      [5, "ink", 5]
    ])
    expect((await ask("select * from Area")).rows).toEqual([
      ["pen", 3],
      ["ink", 5]
    ])
    expect((await ask("select * from xl_tables")).rows).toEqual([["Items", "Stock", "B3:C6"]])
    expect((await ask("select name, hidden from xl_sheets")).rows).toEqual([
      ["Stock", false],
      ["Secret", true]
    ])
  })

  it("formulas, shared ones too", async () => {
    const file = await writeBook(newFile(), (book) => {
      const sheet = book.addWorksheet("F")
      sheet.addRows([["n", "double"], [1], [2], [3]])
      sheet.fillFormula("B2:B4", "A2*2", [2, 4, 6])
      sheet.getCell("D2").value = { formula: "SUM($A$2:A4)", result: 6 }
    })
    const { rows } = await Effect.runPromise(answer(file, "select * from xl_formulas order by cell"))
    expect(rows).toEqual([
      ["F", "B2", "A2*2", 2],
      ["F", "B3", "A3*2", 4],
      ["F", "B4", "A4*2", 6],
      ["F", "D2", "SUM($A$2:A4)", 6]
    ])
  })
})
