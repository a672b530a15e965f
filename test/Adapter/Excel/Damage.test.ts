/** Workbooks that are damaged anywhere give rows or a refusal, never another error, and never hang. */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import { openWorkbook } from "../../../src/Adapter/Excel/Book.js"
import { CurrentFile } from "../../../src/Adapter/Excel/CurrentFile.js"
import { Refused } from "../../../src/Adapter/Sqlite/Execute.js"
import { folder } from "../../support/Folder.js"
import { limits } from "./Ask.js"
import { folder as handed } from "./Expected.js"
import { parts, rowsXml } from "./Parts.js"
import { zip } from "./Zip.js"

const place = folder()
const file = join(place, "damaged.xlsx")

const questions = [
  "select * from xl_sheets",
  "select * from xl_tables, xl_names",
  "select * from xl_formulas",
  "select * from S",
  "select * from [S!A1:C9]",
  "select * from [S$A1:C9]",
  "select * from Area"
]

/** Asks everything; whatever is no refusal fails the test. */
const readAll = async () => {
  const current = new CurrentFile(file, openWorkbook, 2 ** 26)
  for (const sql of questions)
    await current
      .answer({ id: 1, kind: "query", sql, params: [], limits, lockDeadline: 0 })
      .catch((error: unknown) => {
        if (error instanceof Refused) return
        throw new Error(`${sql}: ${error}`, { cause: error })
      })
  current.close()
}

const whole = parts({
  sheets: {
    S: `${rowsXml(["id", "name", "n"], [1, "a & b", 2.5], [2, "x", true])}<row r="4"><c r="A4" t="s"><v>0</v></c><c r="B4" t="str"><f t="shared" ref="B4:B5" si="0">A1&amp;"x"</f><v>y</v></c><c r="C4" t="d"><v>2024-01-15</v></c></row><row r="5"><c r="B5"><f t="shared" si="0"/></c><c r="C5" t="e"><v>#N/A</v></c></row>`
  },
  strings: "<si><r><t>a</t></r><r><t>b</t></r></si><si><t>c_x000D_</t></si>",
  names: '<definedName name="Area">S!$A$1:$B$3</definedName>'
})

describe("damage", () => {
  it("in the text of any part", async () => {
    const edit = fc.record({
      part: fc.nat(whole.length - 1),
      at: fc.nat(3000),
      length: fc.nat(12),
      text: fc.oneof(
        fc.constantFrom(
          "<",
          ">",
          "/",
          "&",
          '"',
          "<c>",
          "</v>",
          "&#0;",
          'r="',
          "99999999999",
          "-1",
          "]]>",
          "<![CDATA[",
          "\u0000"
        ),
        fc.string({ maxLength: 6 })
      )
    })
    await fc.assert(
      fc.asyncProperty(fc.array(edit, { minLength: 1, maxLength: 4 }), async (edits) => {
        const changed = whole.map(({ content, name }, index) => {
          let text = String(content)
          for (const { at, length, part, text: inserted } of edits)
            if (part === index) {
              const from = at % (text.length + 1)
              text = text.slice(0, from) + inserted + text.slice(from + length)
            }
          return { name, content: text }
        })
        writeFileSync(file, zip(changed))
        await readAll()
      }),
      { numRuns: 400 }
    )
  }, 120_000)

  it("in any byte of a file", async () => {
    const sources = ["tables.xlsx", "pretty-xml.xlsx", "strict.xlsx"].map((name) =>
      readFileSync(`${handed}${name}`)
    )
    await fc.assert(
      fc.asyncProperty(
        fc.nat(sources.length - 1),
        fc.array(fc.tuple(fc.nat(4000), fc.nat(255)), { minLength: 1, maxLength: 6 }),
        fc.option(fc.nat(4000), { nil: undefined }),
        async (which, changes, cut) => {
          const bytes = Buffer.from(sources[which] ?? "")
          for (const [at, value] of changes) bytes[at % bytes.length] = value
          writeFileSync(file, cut === undefined ? bytes : bytes.subarray(0, cut % bytes.length))
          await readAll()
        }
      ),
      { numRuns: 300 }
    )
  }, 120_000)

  it("is told in a sentence, with advice and without a path", async () => {
    writeFileSync(file, zip(whole).subarray(0, 700))
    const current = new CurrentFile(file, openWorkbook, 2 ** 26)
    const error = await current
      .answer({ id: 1, kind: "query", sql: "select 1", params: [], limits, lockDeadline: 0 })
      .catch((caught: unknown) => caught)
    expect(error).toBeInstanceOf(Refused)
    expect(String(error)).not.toContain(place)
  })
})
