import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import fc from "fast-check"
import { kindOfText } from "../../../src/Adapter/Excel/Delimited.js"
import { Kind } from "../../../src/Adapter/Excel/Value.js"
import * as Excel from "../../../src/Adapter/Excel.js"
import { folder } from "../../support/Folder.js"
import { ask, query } from "./Ask.js"

const place = folder()
let count = 0

const write = (content: string | Buffer, extension = "csv") => {
  const name = `file_${++count}`
  const file = join(place, `${name}.${extension}`)
  writeFileSync(file, content)
  return { file, name }
}

const adapterOf = (file: string) => Excel.make(new Excel.Config({ file, engine: "csv" }))

/** `select *` with the row numbers. */
const all = (content: string | Buffer, extension?: string) => {
  const { file, name } = write(content, extension)
  return Effect.scoped(
    Effect.flatMap(adapterOf(file), (adapter) => query(adapter, `select rowid, * from [${name}]`))
  )
}

const rowsOf = (content: string | Buffer, extension?: string) =>
  Effect.map(all(content, extension), ({ columns, rows }) => [
    columns.slice(1),
    ...rows.map((row) => row.slice(1))
  ])

describe("kindOfText", () => {
  it.each([
    ["0", Kind.integer],
    ["-12", Kind.integer],
    ["9223372036854775807", Kind.integer],
    ["9223372036854775808", Kind.text],
    ["007", Kind.text],
    ["-01", Kind.text],
    ["+49", Kind.text],
    ["1,5", Kind.text],
    ["1 000", Kind.text],
    ["1.50", Kind.real],
    ["0.1", Kind.real],
    [".5", Kind.text],
    ["5.", Kind.text],
    ["1e3", Kind.real],
    ["1e999", Kind.text],
    ["0.30000000000000004", Kind.real],
    ["0.30000000000000001", Kind.text],
    ["0.1000000000000000055", Kind.text],
    ["NaN", Kind.text],
    ["0x10", Kind.text],
    ["true", Kind.text],
    ["2024-02-29", Kind.moment],
    ["2024-02-29 13:05", Kind.moment],
    ["2024-02-29T13:05:01.5", Kind.moment],
    ["2024-13-01", Kind.text],
    ["29.02.2024", Kind.text],
    ["2024-02-29T13:05:01Z", Kind.text],
    [" 1", Kind.text]
  ])("%s", (text, kind) => {
    expect(kindOfText(text)).toBe(kind)
  })

  it.each([
    ["digits", "7".repeat(5_000_000)],
    ["zeros between other digits", `1.${"0".repeat(5_000_000)}1`],
    ["digits before a letter", `${"1".repeat(5_000_000)}x`]
  ])("endless text: %s", (_, text) => {
    expect(kindOfText(text)).toBe(Kind.text)
  })
})

describe("delimited text", () => {
  it.effect("types where a whole column agrees", () =>
    Effect.gen(function* () {
      const { columnTypes, columns, rows } = yield* all(
        [
          "id,price,code,when,mixed,empty,big",
          "1,1.50,007,2024-02-29 13:05,1,,9007199254740993",
          "2,2,42,2024-03-01T00:00:00.500,x,,1",
          "3,,8,,3,,",
          ""
        ].join("\n")
      )
      expect(columns).toEqual(["rowid", "id", "price", "code", "when", "mixed", "empty", "big"])
      expect(columnTypes).toEqual(["INTEGER", "INTEGER", "REAL", "TEXT", "TEXT", "TEXT", "ANY", "INTEGER"])
      expect(rows).toEqual([
        [2, 1, 1.5, "007", "2024-02-29T13:05:00", "1", null, "9007199254740993"],
        [3, 2, 2, "42", "2024-03-01T00:00:00.5", "x", null, 1],
        [4, 3, null, "8", null, "3", null, null]
      ])
    })
  )

  it.effect("a date column that does not agree keeps its texts", () =>
    Effect.map(rowsOf("day\n2024-02-29 13:05\nsoon\n"), (rows) =>
      expect(rows).toEqual([["day"], ["2024-02-29 13:05"], ["soon"]])
    )
  )

  it.effect("quotes, line breaks, empty lines, uneven records", () =>
    Effect.map(
      all('name,note,n\r\n"a, ""b""","two\r\nlines",1\r\n\r\nonly\r\n5" pipe,x,2,beyond\r\n'),
      ({ columns, rows }) => {
        expect(columns).toEqual(["rowid", "name", "note", "n", "D"])
        expect(rows).toEqual([
          [2, 'a, "b"', "two\r\nlines", 1, null],
          [4, "only", null, null, null],
          [5, '5" pipe', "x", 2, "beyond"]
        ])
      }
    )
  )

  const wanted = [
    ["name", "price €"],
    ["Zoë", 1.5],
    ["œuf", 2]
  ]
  it.effect.each([
    ["UTF-8", Buffer.from("name,price €\nZoë,1.5\nœuf,2\n")],
    ["UTF-8 with a mark", Buffer.from("\ufeffname,price €\nZoë,1.5\nœuf,2\n")],
    ["UTF-16 LE", Buffer.from("\ufeffname,price €\nZoë,1.5\nœuf,2\n", "utf16le")],
    ["UTF-16 BE", Buffer.from("\ufeffname,price €\nZoë,1.5\nœuf,2\n", "utf16le").swap16()],
    ["UTF-16 LE without a mark", Buffer.from("name,price €\nZoë,1.5\nœuf,2\n", "utf16le")],
    ["Windows-1252", Buffer.from("name,price \x80\nZo\xeb,1.5\n\x9cuf,2\n", "latin1")]
  ] as const)("%s", ([, bytes]) => Effect.map(rowsOf(bytes), (rows) => expect(rows).toEqual(wanted)))

  it.effect.each([
    [
      "a tab in a .tsv",
      "a\tb\n1\tx,y\n",
      "tsv",
      [
        ["a", "b"],
        [1, "x,y"]
      ]
    ],
    [
      "a comma in a .csv",
      "a,b\n1,x;y\n",
      "csv",
      [
        ["a", "b"],
        [1, "x;y"]
      ]
    ],
    [
      "a semicolon where no comma is",
      "a;b\n1;x,y\n",
      "csv",
      [
        ["a", "b"],
        [1, "x,y"]
      ]
    ],
    [
      "a tab in a .csv",
      "a\tb\n1\tx\n",
      "csv",
      [
        ["a", "b"],
        [1, "x"]
      ]
    ],
    [
      "a comma inside quotes is none",
      '"a,x";b\n1;2\n',
      "csv",
      [
        ["a,x", "b"],
        [1, 2]
      ]
    ],
    [
      "declared",
      "sep=|\na|b\n1|x\n",
      "csv",
      [
        ["a", "b"],
        [1, "x"]
      ]
    ]
  ] as const)("%s", ([, content, extension, expected]) =>
    Effect.map(rowsOf(content, extension), (rows) => expect(rows).toEqual(expected))
  )

  it.effect("takes each end of a line for one, also mixed", () =>
    Effect.map(rowsOf('a,b\r\n1,x\n2,"y\r\nz"\r\n3,\r\r\n4,w'), (rows) =>
      expect(rows).toEqual([
        ["a", "b"],
        [1, "x"],
        [2, "y\r\nz"],
        [3, null],
        [4, "w"]
      ])
    )
  )

  it.effect("a title above the header, numbers without one, nothing at all", () =>
    Effect.gen(function* () {
      expect(yield* rowsOf("Report\n\nid,name,sum\n1,a,2\n")).toEqual([
        ["id", "name", "sum"],
        [1, "a", 2]
      ])
      expect(yield* rowsOf("1,2\n3,4\n")).toEqual([
        ["A", "B"],
        [1, 2],
        [3, 4]
      ])
      expect(yield* rowsOf("")).toEqual([["A"]])
      expect(yield* rowsOf("\n\n")).toEqual([["A"]])
      expect(yield* rowsOf("id,name")).toEqual([["id", "name"]])
    })
  )

  it.effect("its ranges and its catalog", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { file, name } = write("id,name\n1,a\n2,b\n")
        const adapter = yield* adapterOf(file)
        expect((yield* query(adapter, `select * from [${name}!A2:B3]`)).rows).toEqual([
          [1, "a"],
          [2, "b"]
        ])
        expect((yield* query(adapter, "select * from xl_sheets")).rows).toEqual([[name, false, 2, 2, 1]])
        expect((yield* query(adapter, "select * from xl_formulas")).rows).toEqual([])
      })
    )
  )

  it.effect("any table that is written is read back", () => {
    const field = fc
      .string({ unit: "grapheme", maxLength: 12 })
      .filter((text) => text !== "" && !text.includes("\0"))
    const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`
    const examples = fc.sample(fc.array(fc.tuple(field, field), { minLength: 1, maxLength: 20 }), 25)
    return Effect.forEach(examples, (records) => {
      // A last record keeps the columns from agreeing on a number.
      const lines = [["first", "second"], ...records, ["x", "y"]]
      const content = lines.map((line) => line.map(quoted).join()).join("\r\n")
      return Effect.map(rowsOf(content), (rows) => expect(rows).toEqual(lines))
    })
  })

  it.effect("more rows than a sheet can have, and more columns than a table", () =>
    Effect.gen(function* () {
      const { file, name } = write(`n\n${"7\n".repeat(1_048_600)}`)
      const adapter = yield* adapterOf(file)
      const { rows } = yield* query(adapter, `select count(*), max(rowid), sum(n) from [${name}]`)
      expect(rows).toEqual([[1_048_600, 1_048_601, 7_340_200]])
      const other = write(`${"h,".repeat(2500)}h\n${"1,".repeat(2500)}1\n`)
      const wide = yield* query(yield* adapterOf(other.file), `select * from [${other.name}]`)
      expect(wide.columns).toHaveLength(2000)
      expect(wide.notes.join()).toContain("501 cells are left out")
    }).pipe(Effect.scoped)
  )

  it.effect("many rows, whose types are settled at the end", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const lines = Array.from({ length: 20_000 }, (_, n) => `${n},${n / 4},${n === 19_999 ? "x" : n}`)
        const { file, name } = write(["n,quarter,late", ...lines].join("\n"))
        const adapter = yield* adapterOf(file)
        const { columnTypes, rows } = yield* query(
          adapter,
          `select sum(n) as n, sum(quarter) as q, max(typeof(n)) as i, max(typeof(quarter)) as r, max(typeof(late)) as t from [${name}]`
        )
        expect(rows).toEqual([[199_990_000, 49_997_500, "integer", "real", "text"]])
        expect(columnTypes).toHaveLength(5)
      })
    )
  )

  it.effect.each([
    ["a quote that is never closed", 'a,b\n1,"open\n2,3\n', "a quote is opened and never closed"],
    ["a workbook", "PK\u0003\u0004 and so on", "it is a workbook or an archive"],
    ["a PDF document", "%PDF-1.7\n", "it is a PDF document"]
  ] as const)("%s", ([, content, message]) =>
    Effect.scoped(
      Effect.gen(function* () {
        const { file, name } = write(content)
        const adapter = yield* adapterOf(file)
        const { failure } = yield* ask(adapter, `select * from [${name}]`)
        expect(failure).toMatchObject({ category: "connection_failed", reason: "file_unreadable" })
        expect(failure?.text).toContain(`The text file cannot be read: ${message}`)
      })
    )
  )
})
