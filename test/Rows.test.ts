import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import {
  type Cell,
  cutText,
  Excerpt,
  type Format,
  RowBuilder,
  type RowLimits,
  uniqueNames
} from "../src/Rows.js"

const wide: RowLimits = { maxRows: 1000, maxBytes: 2 ** 20, maxCellBytes: 2 ** 20, format: "columnar" }

const column = (name: string) => ({ name, type: null })

const build = (
  names: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<Cell>>,
  limits: Partial<RowLimits> = {}
) => {
  const builder = new RowBuilder(names.map(column), { ...wide, ...limits })
  for (const row of rows) if (!builder.add(row)) break
  return builder.finish()
}

const utf8 = (text: string) => Buffer.byteLength(text)

describe("unique names", () => {
  it.each<readonly [ReadonlyArray<string>, ReadonlyArray<string>]>([
    [[], []],
    [
      ["a", "b"],
      ["a", "b"]
    ],
    [
      ["a", "a", "a"],
      ["a", "a_2", "a_3"]
    ],
    [
      ["a", "a", "a_2"],
      ["a", "a_3", "a_2"]
    ],
    [
      ["", ""],
      ["column_1", "column_2"]
    ],
    [
      ["column_2", ""],
      ["column_2", "column_2_2"]
    ],
    [
      ["a", "A", "ä", "Ä"],
      ["a", "A", "ä", "Ä"]
    ],
    [
      ["__proto__", "constructor", "__proto__"],
      ["__proto__", "constructor", "__proto___2"]
    ]
  ])("%j → %j", (names, expected) => expect(uniqueNames(names)).toEqual(expected))

  it("are unique, and a name that stood alone stays", () => {
    const name = fc.constantFrom(
      "",
      "a",
      "b",
      "a_2",
      "a_3",
      "column_1",
      "column_2",
      "__proto__",
      "column_1_2"
    )
    fc.assert(
      fc.property(fc.array(name, { maxLength: 12 }), (names) => {
        const unique = uniqueNames(names)
        expect(unique).toHaveLength(names.length)
        expect(new Set(unique).size).toBe(names.length)
        names.forEach((name, index) => {
          if (name !== "" && names.indexOf(name) === index) expect(unique[index]).toBe(name)
          expect(unique[index]).not.toBe("")
        })
      })
    )
  })
})

describe("cutting text", () => {
  it("keeps the longest run of whole characters within the bound", () => {
    const text = fc.string({
      unit: fc.oneof(fc.constantFrom("a", "é", "中", "😀", "\u0000"), fc.fullUnicode())
    })
    fc.assert(
      fc.property(text, fc.nat({ max: 40 }), (text, limit) => {
        const cut = cutText(text, limit)
        expect(utf8(cut)).toBeLessThanOrEqual(limit)
        expect(text.startsWith(cut)).toBe(true)
        const [next] = [...text.slice(cut.length)]
        if (next !== undefined) expect(utf8(cut + next)).toBeGreaterThan(limit)
      })
    )
  })
})

/** Cells as value tables leave them. */
const cell: fc.Arbitrary<Cell> = fc.oneof(
  fc.constant(null),
  fc.boolean(),
  fc.maxSafeInteger(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.string({ unit: "grapheme" }),
  fc.string({ unit: fc.constantFrom('"', "\\", "\u0001", "\n", "é", "😀", "x"), maxLength: 60 }),
  fc.uint8Array({ maxLength: 60 }),
  fc.array(fc.oneof(fc.integer(), fc.string(), fc.constant(null)), { maxLength: 5 }),
  fc.dictionary(fc.string(), fc.integer(), { maxKeys: 4 })
)

const table = fc.integer({ min: 1, max: 4 }).chain((width) =>
  fc.tuple(
    fc.array(fc.constantFrom("a", "b", "", "a long name", 'q"\\', "名前", "__proto__"), {
      minLength: width,
      maxLength: width
    }),
    fc.array(fc.array(cell, { minLength: width, maxLength: width }), { maxLength: 15 })
  )
)

const asSent = (
  columns: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<unknown>>,
  format: Format
): string =>
  JSON.stringify(
    format === "columnar"
      ? rows
      : rows.map((row) => Object.fromEntries(columns.map((name, index) => [name, row[index]])))
  )

describe("limits", () => {
  it("the rows as sent never exceed maxBytes, and a row more would", () => {
    fc.assert(
      fc.property(
        table,
        fc.constantFrom<Format>("records", "columnar"),
        fc.integer({ min: 2, max: 400 }),
        ([names, rows], format, maxBytes) => {
          const result = build(names, rows, { format, maxBytes })
          expect(utf8(asSent(result.columns, result.rows, format))).toBeLessThanOrEqual(maxBytes)
          if (result.truncatedBy === null) expect(result.rows).toHaveLength(rows.length)
          else {
            expect(result.truncatedBy).toBe("max_bytes")
            const whole = build(names, rows.slice(0, result.rows.length + 1), { format })
            // The builder leaves itself the comma after a row.
            expect(utf8(asSent(whole.columns, whole.rows, format))).toBeGreaterThan(maxBytes - 1)
          }
        }
      )
    )
  })

  it("maxRows is exact, and the engine is asked for one more", () => {
    fc.assert(
      fc.property(fc.nat({ max: 12 }), fc.integer({ min: 1, max: 12 }), (available, maxRows) => {
        const builder = new RowBuilder([column("a")], { ...wide, maxRows })
        expect(builder.wanted).toBe(maxRows + 1)
        let taken = 0
        while (taken < available) {
          taken++
          if (!builder.add([taken])) break
        }
        const { rows, truncatedBy } = builder.finish()
        expect(taken).toBe(Math.min(available, maxRows + 1))
        expect(rows).toHaveLength(Math.min(available, maxRows))
        expect(truncatedBy).toBe(available > maxRows ? "max_rows" : null)
      })
    )
  })

  it("a text beyond maxCellBytes is cut to whole characters, and its size is told", () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: "grapheme", maxLength: 40 }), { minLength: 1, maxLength: 4 }),
        fc.integer({ min: 4, max: 40 }),
        (texts, maxCellBytes) => {
          const names = texts.map((_, index) => `c${index}`)
          const { rows, truncatedBy, truncatedCells } = build(names, [texts], { maxCellBytes })
          expect(truncatedBy).toBeNull()
          expect(rows[0]).toEqual(
            texts.map((text) => (utf8(text) <= maxCellBytes ? text : cutText(text, maxCellBytes)))
          )
          expect(truncatedCells).toEqual(
            texts.flatMap((text, index) =>
              utf8(text) > maxCellBytes ? [{ row: 0, column: `c${index}`, bytes: utf8(text) }] : []
            )
          )
        }
      )
    )
  })

  it("bytes are cut before base64", () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 60 }),
        fc.integer({ min: 1, max: 40 }),
        (bytes, maxCellBytes) => {
          const { rows, truncatedCells } = build(["b"], [[bytes]], { maxCellBytes })
          expect(rows[0]).toEqual([Buffer.from(bytes.slice(0, maxCellBytes)).toString("base64")])
          expect(truncatedCells.map((cell) => cell.bytes)).toEqual(
            bytes.length > maxCellBytes ? [bytes.length] : []
          )
        }
      )
    )
  })

  it("a value of which only the beginning is held says its whole size", () => {
    const { rows, truncatedCells } = build(
      ["t", "b", "whole"],
      [[new Excerpt("é".repeat(20), 5_000_000), new Excerpt(new Uint8Array(30), 700), new Excerpt("ab", 2)]],
      { maxCellBytes: 9 }
    )
    expect(rows).toEqual([["éééé", Buffer.alloc(9).toString("base64"), "ab"]])
    expect(truncatedCells).toEqual([
      { row: 0, column: "t", bytes: 5_000_000 },
      { row: 0, column: "b", bytes: 700 }
    ])
  })

  it("a structured value is whole, or the beginning of its text", () => {
    const value = { a: [1, 2, 3], b: "é" }
    const text = JSON.stringify(value)
    expect(build(["j"], [[value]], { maxCellBytes: utf8(text) }).rows).toEqual([[value]])
    const { rows, truncatedCells } = build(["j"], [[value]], { maxCellBytes: 10 })
    expect(rows).toEqual([[text.slice(0, 10)]])
    expect(truncatedCells).toEqual([{ row: 0, column: "j", bytes: utf8(text) }])
  })

  it("cells of a row that did not fit are not told as cut", () => {
    const { rows, truncatedBy, truncatedCells } = build(["t"], [["x".repeat(20)], ["y".repeat(20)]], {
      maxCellBytes: 10,
      maxBytes: 20
    })
    expect(rows).toEqual([["x".repeat(10)]])
    expect(truncatedBy).toBe("max_bytes")
    expect(truncatedCells).toEqual([{ row: 0, column: "t", bytes: 20 }])
  })

  it("after the end no row is taken", () => {
    const builder = new RowBuilder([column("a")], { ...wide, maxRows: 1 })
    expect([builder.add([1]), builder.add([2]), builder.add([3])]).toEqual([true, false, false])
    expect(builder.finish()).toMatchObject({ rows: [[1]], truncatedBy: "max_rows" })
  })

  it("an adapter that stopped by itself says so, once", () => {
    const builder = new RowBuilder([column("a")], wide)
    builder.stop("max_bytes")
    builder.stop("max_rows")
    expect(builder.finish().truncatedBy).toBe("max_bytes")
  })

  it("a note is kept once", () => {
    const builder = new RowBuilder([], wide)
    for (const text of ["a", "b", "a"]) builder.note(text)
    expect(builder.finish()).toMatchObject({ columns: [], rows: [], notes: ["a", "b"] })
  })
})
