/** What section 8 promises beyond the handed workbooks: names, notes, limits, and files that change. */
import { copyFileSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { openWorkbook } from "../../../src/Adapter/Excel/Book.js"
import { CurrentFile } from "../../../src/Adapter/Excel/CurrentFile.js"
import { lettersOf } from "../../../src/Adapter/Excel/Reference.js"
import * as Excel from "../../../src/Adapter/Excel.js"
import Driver from "../../../src/Adapter/Sqlite/Driver.js"
import type { StatementRequest } from "../../../src/Adapter/Sqlite/Protocol.js"
import { folder } from "../../support/Folder.js"
import { ask, limits, query } from "./Ask.js"
import { writeParts } from "./Books.js"
import { parts, rowsXml, sheetXml } from "./Parts.js"
import { zip } from "./Zip.js"

const place = folder()
let count = 0
const newFile = () => join(place, `${++count}.xlsx`)

const adapterOf = (file: string) => Excel.make(new Excel.Config({ file }))

const request = (sql: string): StatementRequest => ({
  id: 1,
  kind: "query",
  sql,
  params: [],
  limits,
  lockDeadline: 0
})

/** Reads in this process, without a child. */
const read = async (file: string, sql: string) => {
  const current = new CurrentFile(file, openWorkbook, 2 ** 30)
  try {
    return await current.answer(request(sql))
  } finally {
    current.close()
  }
}

const refusal = (work: Promise<unknown>) =>
  work.then(
    () => "read",
    (error: unknown) =>
      typeof error === "object" && error !== null && "refusal" in error ? error.refusal : error
  )

describe("names that differ only in case", () => {
  const file = writeParts(newFile(), {
    sheets: { Sales: rowsXml(["id"], [1]), other: rowsXml(["id"], [2]) },
    names: '<definedName name="sales">other!$A$1:$A$2</definedName>'
  })

  it("each statement finds its own", async () => {
    const current = new CurrentFile(file, openWorkbook, 2 ** 30)
    const one = async (sql: string) => (await current.answer(request(sql))).rows
    for (let time = 0; time < 3; time++) {
      expect(await one("select id from Sales")).toEqual([[1]])
      expect(await one("select id from [sales]")).toEqual([[2]])
      expect(await one("select id from SALES")).toEqual([[1]])
    }
    expect(await one("select a.id, b.id from Sales a, [other!A2:A2] c, other b")).toEqual([[1, 2]])
    expect(await refusal(current.answer(request("select * from Sales a, sales b")))).toMatchObject({
      code: "AMBIGUOUS_TABLE"
    })
    current.close()
  })
})

describe("odd names and places", () => {
  it("a header called rowid, oid or _rowid_", async () => {
    const file = writeParts(newFile(), {
      sheets: {
        One: rowsXml(["rowid", "b"], [70, 1]),
        All: rowsXml(["rowid", "oid", "_rowid_"], [7, 8, 9])
      }
    })
    expect((await read(file, "select _rowid_, rowid, b from One")).rows).toEqual([[2, 70, 1]])
    expect((await read(file, "select * from [All]")).rows).toEqual([[7, 8, 9]])
  })

  it("sheets called as SQLite's own tables are", async () => {
    const file = writeParts(newFile(), {
      sheets: { sqlite_stat: rowsXml(["a"], [1]), "main.x": rowsXml(["a"], [2]), select: rowsXml(["a"], [3]) }
    })
    expect((await read(file, "select * from sqlite_stat")).rows).toEqual([[1]])
    expect((await read(file, "select * from [main.x]")).rows).toEqual([[2]])
    expect((await read(file, "select * from main.[select]")).rows).toEqual([[3]])
  })

  it("cells left of the header, and right of it, far below", async () => {
    const row = (n: number) => `<row r="${n}"><c r="C${n}"><v>${n}</v></c><c r="D${n}"><v>${n}</v></c></row>`
    const header = '<row r="1"><c r="C1" t="str"><v>c</v></c><c r="D1" t="str"><v>d</v></c></row>'
    const many = Array.from({ length: 40 }, (_, n) => row(n + 2)).join("")
    const file = writeParts(newFile(), {
      sheets: {
        S: `${header}${many}<row r="50"><c r="B50" t="str"><v>left</v></c><c r="G50" t="str"><v>right</v></c></row>`
      }
    })
    const result = await read(file, "select rowid, * from S where rowid in (2, 50)")
    expect(result.columns).toEqual(["rowid", "B", "c", "d", "E", "F", "G"])
    expect(result.columnTypes).toEqual(["INTEGER", "TEXT", "INTEGER", "INTEGER", "ANY", "ANY", "TEXT"])
    expect(result.rows).toEqual([
      [2, null, 2, 2, null, null, null],
      [50, "left", null, null, null, null, "right"]
    ])
  })

  it("more columns than a table can have", async () => {
    const file = writeParts(newFile(), {
      sheets: {
        S: `${rowsXml(["a", "b"], [1, 2])}<row r="3"><c r="BXX3"><v>3</v></c><c r="XFD3"><v>4</v></c></row>`
      }
    })
    const result = await read(file, "select a, b, BXX from S")
    expect(result.rows).toEqual([
      [1, 2, null],
      [null, null, 3]
    ])
    expect(result.notes.join()).toContain("1 cell is left out")
    expect((await read(file, "select * from [S!XFD3]")).rows).toEqual([[4]])
  })

  it("a lone cell far to the right of many rows takes no room in each of them", async () => {
    const rows = Array.from(
      { length: 20_000 },
      (_, n) => `<row r="${n + 2}"><c r="A${n + 2}"><v>${n}</v></c><c r="B${n + 2}"><v>${n}</v></c></row>`
    )
    rows[5] = `<row r="7"><c r="A7"><v>5</v></c><c r="BDA7"><v>77</v></c></row>`
    const data = rowsXml(["a", "b"]) + rows.join("")
    const file = writeParts(newFile(), { sheets: { S: data } })
    const current = new CurrentFile(file, openWorkbook, 2 ** 20)
    const result = await current.answer(
      request("select a, b, BDA, (select count(*) from S) from S where BDA > 0")
    )
    expect(result.rows).toEqual([[5, null, 77, 20_000]])
    expect((await current.answer(request("pragma integrity_check"))).rows).toEqual([["ok"]])
    current.close()
  })

  it("a table as wide as one can be", async () => {
    const letters = Array.from({ length: 2000 }, (_, n) => lettersOf(n + 1))
    const row = (n: number, cell: (column: string, at: number) => string) =>
      `<row r="${n}">${letters.map((column, at) => cell(`${column}${n}`, at)).join("")}</row>`
    const data = [
      row(1, (r, at) => `<c r="${r}" t="str"><v>h${at}</v></c>`),
      ...Array.from({ length: 100 }, (_, n) => row(n + 2, (r, at) => `<c r="${r}"><v>${n * at}</v></c>`))
    ]
    const file = writeParts(newFile(), { sheets: { S: data.join("") } })
    const result = await read(file, "select sum(h1), sum(h127), sum(h128), sum(h1999), max(rowid) from S")
    expect(result.rows).toEqual([[4950, 4950 * 127, 4950 * 128, 4950 * 1999, 101]])
    expect((await read(file, "select * from S where rowid = 3")).columns).toHaveLength(2000)
  })

  it("empty rows before the first one in a range of raw cells", async () => {
    const file = writeParts(newFile(), { sheets: { S: rowsXml(["a", "b"], [1, 2], [3, 4]) } })
    const { rows } = await read(file, "select rowid, * from [S!C1:D3]")
    expect(rows).toEqual([
      [1, null, null],
      [2, null, null],
      [3, null, null]
    ])
  })

  it("a row that stands there twice is damage", async () => {
    const file = writeParts(newFile(), { sheets: { S: `${rowsXml(["a"], [1])}${rowsXml(["b"], [2])}` } })
    expect(await refusal(read(file, "select * from S"))).toMatchObject({ code: "WORKBOOK_DAMAGED" })
  })

  it("rows and cells out of order, and prefixed elements", async () => {
    const data =
      '<x:row r="2"><x:c r="B2"><x:v>2</x:v></x:c><x:c r="A2"><x:v>1</x:v></x:c></x:row><x:row r="1"><x:c r="A1" t="str"><x:v>a</x:v></x:c><x:c r="B1" t="str"><x:v>b</x:v></x:c></x:row>'
    const sheet = `<x:worksheet xmlns:x="urn:x"><x:sheetData>${data}</x:sheetData></x:worksheet>`
    const file = newFile()
    const all = parts({ sheets: { S: "" } })
    writeFileSync(
      file,
      zip(all.map((part) => (part.name.endsWith("sheet1.xml") ? { ...part, content: sheet } : part)))
    )
    expect((await read(file, "select rowid, A, B from [S!A1:B2] order by rowid")).rows).toEqual([
      [1, "a", "b"],
      [2, 1, 2]
    ])
  })

  it("a 64-bit archive, and parts in UTF-16", async () => {
    const file = newFile()
    const all = parts({ sheets: { Zoë: rowsXml(["ä"], ["ö"]) } })
    writeFileSync(
      file,
      zip(
        all.map((part) => ({ ...part, content: Buffer.from(`\ufeff${part.content}`, "utf16le") })),
        { zip64: true }
      )
    )
    const { columns, rows } = await read(file, "select * from [Zoë]")
    expect([columns, rows]).toEqual([["ä"], [["ö"]]])
  })
})

describe("shared strings", () => {
  it("phonetic runs, several runs, escapes, sections and numbers past the end", async () => {
    const strings = [
      "<si><t>plain</t></si>",
      "<si><r><t>two </t></r><r><t xml:space='preserve'>runs</t></r><rPh sb='0' eb='1'><t>no</t></rPh></si>",
      "<si/>",
      "<si><t>a_x0041_&amp;</t></si>",
      "<si><t><![CDATA[<b>]]></t></si>",
      "<si><t>名前😀</t></si>"
    ]
    const cells = [0, 1, 2, 3, 4, 5, 99].map(
      (n, at) => `<row r="${at + 1}"><c r="A${at + 1}" t="s"><v>${n}</v></c></row>`
    )
    const file = writeParts(newFile(), { sheets: { S: cells.join("") }, strings: strings.join("") })
    const { rows } = await read(file, "select A from [S!A1:A9]")
    expect(rows.flat()).toEqual(["plain", "two runs", "", "aA&", "<b>", "名前😀"])
  })
})

describe("notes", () => {
  const file = writeParts(newFile(), {
    sheets: {
      S: `${rowsXml(["a", "b", "c"])}<row r="2"><c r="A2" t="e"><v>#N/A</v></c><c r="B2"><f>1+1</f></c><c r="C2"><v>1</v></c></row>`
    }
  })
  it("count what the statement reads", async () => {
    expect((await read(file, "select * from S")).notes).toEqual([
      "[S]: 1 cell holds an error value and answers null.",
      "[S]: 1 formula has no cached value and answers null; saving the file in a spreadsheet program fills it in."
    ])
    expect((await read(file, "select b from S")).notes).toHaveLength(1)
    expect((await read(file, "select c, count(*) from S")).notes).toEqual([])
    expect((await read(file, "with q as (select a as x from S) select max(x) from q")).notes).toHaveLength(1)
    expect(
      (await read(file, "select c from S where exists (select 1 from S t where t.a is null)")).notes
    ).toEqual(["[S]: 1 cell holds an error value and answers null."])
  })

  it("say that SQLite's own list is not complete", async () => {
    expect((await read(file, "select name from sqlite_master")).notes.join()).toContain("xl_sheets")
  })
})

describe("the tables in memory", () => {
  it("are sound after their definitions were set", async () => {
    const file = writeParts(newFile(), {
      sheets: {
        S: rowsXml(["i", "r", "t", "b", "any"], [1, 1, "x", true, 1], [2, 2.5, "1", false, "y"])
      }
    })
    const result = await read(
      file,
      'select typeof(i), typeof(r), typeof(t), typeof(b), typeof("any"), b from S'
    )
    expect(result.rows).toEqual([
      ["integer", "real", "text", "integer", "integer", true],
      ["integer", "real", "text", "integer", "text", false]
    ])
    expect((await read(file, "pragma integrity_check")).rows).toEqual([["ok"]])
  })

  it("take no more memory than they may", async () => {
    const rows = Array.from({ length: 5000 }, (_, n) => [n, "x".repeat(200)])
    const file = writeParts(newFile(), {
      sheets: { Big: rowsXml(["n", "text"], ...rows), Small: rowsXml(["n"], [1]) }
    })
    const current = new CurrentFile(file, openWorkbook, 2 ** 18)
    expect(await refusal(current.answer(request("select count(*) from Big")))).toMatchObject({
      code: "SQLITE_FULL"
    })
    expect((await current.answer(request("select n from Small"))).rows).toEqual([[1]])
    current.close()
  })

  it("make room for others", async () => {
    const rows = Array.from({ length: 500 }, (_, n) => [n, "x".repeat(200)])
    const sheets = Object.fromEntries(["A", "B", "C"].map((name) => [name, rowsXml(["n", "text"], ...rows)]))
    const file = writeParts(newFile(), { sheets })
    const current = new CurrentFile(file, openWorkbook, 2 ** 18)
    for (const name of ["A", "B", "C", "A"])
      expect((await current.answer(request(`select count(*) from ${name}`))).rows).toEqual([[500]])
    current.close()
  })
})

describe("a file that changes", () => {
  const book = (file: string, value: number) => writeParts(file, { sheets: { S: rowsXml(["n"], [value]) } })

  it.scopedLive("is read again at the next call", () =>
    Effect.gen(function* () {
      const file = book(newFile(), 1)
      const adapter = yield* adapterOf(file)
      expect((yield* query(adapter, "select n from S")).rows).toEqual([[1]])
      book(file, 2)
      expect((yield* query(adapter, "select n from S")).rows).toEqual([[2]])
      // Another file in its place.
      const other = book(newFile(), 3)
      renameSync(other, file)
      expect((yield* query(adapter, "select n from S")).rows).toEqual([[3]])
      // The same size and content, another time.
      utimesSync(file, 1, 1)
      expect((yield* query(adapter, "select n from S")).rows).toEqual([[3]])
    })
  )

  it.scopedLive("is not found while it is not there, and unreadable while it is damaged", () =>
    Effect.gen(function* () {
      const file = book(newFile(), 1)
      const adapter = yield* adapterOf(file)
      const reason = Effect.map(ask(adapter, "select n from S"), ({ failure }) => failure?.reason)
      expect(yield* reason).toBeUndefined()
      rmSync(file)
      expect(yield* reason).toBe("file_not_found")
      writeFileSync(file, "nothing")
      expect(yield* reason).toBe("file_unreadable")
      book(file, 5)
      expect((yield* query(adapter, "select n from S")).rows).toEqual([[5]])
    })
  )

  it("while it is read is read again", async () => {
    const file = book(newFile(), 1)
    const other = book(newFile(), 2)
    let times = 0
    const current = new CurrentFile(
      file,
      async (path, identity) => {
        const opened = await openWorkbook(path, identity)
        return {
          ...opened,
          read: async (sheet, wish) => {
            const more = await opened.read(sheet, wish)
            // Replaced behind the reader's back, once.
            if (times++ === 0) renameSync(other, file)
            return more
          }
        }
      },
      2 ** 30
    )
    expect((await current.answer(request("select n from S"))).rows).toEqual([[2]])
    expect(times).toBe(2)
    current.close()
  })

  it("between its directory and its sheets is read again", async () => {
    const file = book(newFile(), 1)
    const other = book(newFile(), 2)
    let times = 0
    const current = new CurrentFile(
      file,
      async (path, identity) => {
        const opened = await openWorkbook(path, identity)
        if (times++ === 0) renameSync(other, file)
        return opened
      },
      2 ** 30
    )
    expect((await current.answer(request("select n from S"))).rows).toEqual([[2]])
    current.close()
  })

  it("each time it is read is given up", async () => {
    const file = book(newFile(), 1)
    let times = 0
    const current = new CurrentFile(
      file,
      async (path, identity) => {
        const opened = await openWorkbook(path, identity)
        utimesSync(path, ++times, times)
        return opened
      },
      2 ** 30
    )
    expect(await refusal(current.answer(request("select n from S")))).toMatchObject({
      code: "WORKBOOK_DAMAGED"
    })
    expect(times).toBe(4)
    current.close()
  })
})

describe("other files", () => {
  it.scopedLive.each([
    ["a folder", place, "file_unreadable"],
    ["a file in a folder that is none", join(place, "1.xlsx", "x.xlsx"), "file_not_found"],
    ["nothing", join(place, "nosuch.xlsx"), "file_not_found"]
  ] as const)("%s", ([, file, reason]) =>
    Effect.gen(function* () {
      const adapter = yield* adapterOf(file)
      const { failure } = yield* ask(adapter, "select 1")
      expect(failure).toMatchObject({ category: "connection_failed", reason })
      expect(failure?.text).not.toContain(place)
    })
  )

  it("an SQLite database", async () => {
    const file = newFile()
    new Driver(file).exec("create table t (a)").close()
    expect(await refusal(read(file, "select 1"))).toMatchObject({ code: "NOT_A_WORKBOOK" })
  })

  it("an OpenDocument spreadsheet", async () => {
    const file = newFile()
    writeFileSync(
      file,
      zip([
        { name: "mimetype", content: "application/vnd.oasis.opendocument.spreadsheet", stored: true },
        { name: "content.xml", content: "<x/>" }
      ])
    )
    expect(await refusal(read(file, "select 1"))).toMatchObject({ code: "WORKBOOK_ODS" })
  })

  it.each([
    ["<html><table><tr><td>1</td></tr></table></html>", "HTML page"],
    [
      '<?xml version="1.0"?><Workbook xmlns="urn:schemas-microsoft-com:office:spreadsheet"/>',
      "XML spreadsheet"
    ],
    ["%PDF-1.7", "PDF"],
    ["{\\rtf1", "RTF"],
    ["\u0009\u0008\u0010\u0000\u0000\u0006", "old binary format"],
    ["\u0000\u0001\u0002", "not a workbook"]
  ])("%j", async (content, what) => {
    const file = newFile()
    writeFileSync(file, content)
    expect(JSON.stringify(await refusal(read(file, "select 1")))).toContain(what)
  })

  it("a part that is no worksheet", async () => {
    const file = newFile()
    const all = parts({ sheets: { S: "" } })
    const wrong = all.map((part) =>
      part.name.endsWith("sheet1.xml") ? { ...part, content: "<chartsheet/>" } : part
    )
    writeFileSync(file, zip(wrong))
    expect(await refusal(read(file, "select * from S"))).toMatchObject({ code: "WORKBOOK_DAMAGED" })
  })

  it("damage in one sheet leaves the others", async () => {
    const file = newFile()
    const all = parts({ sheets: { Good: rowsXml(["a"], [1]), Bad: "" } })
    const wrong = all.map((part) =>
      part.name.endsWith("sheet2.xml") ? { ...part, content: sheetXml("<row><c r='ZZZZ1'/></row>") } : part
    )
    writeFileSync(file, zip(wrong))
    expect((await read(file, "select * from Good")).rows).toEqual([[1]])
    expect(await refusal(read(file, "select * from Bad"))).toMatchObject({ code: "WORKBOOK_DAMAGED" })
  })

  it("a copy is another file", async () => {
    const file = writeParts(newFile(), { sheets: { S: rowsXml(["a"], [1]) } })
    const copy = newFile()
    copyFileSync(file, copy)
    expect((await read(copy, "select * from S")).rows).toEqual([[1]])
  })
})
