import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import { columnNames, findHeader, headerText, type Row } from "../../../src/Adapter/Excel/Header.js"
import { Kind, type Stored } from "../../../src/Adapter/Excel/Value.js"

const kindOf = (value: Stored) =>
  typeof value === "bigint"
    ? Kind.integer
    : typeof value === "number"
      ? Kind.real
      : value === null
        ? Kind.error
        : /^\d{4}-\d\d-\d\d$/.test(value)
          ? Kind.moment
          : Kind.text

const rows = (...all: ReadonlyArray<ReadonlyArray<Stored | undefined>>): ReadonlyArray<Row> =>
  all.map((cells, index) => {
    const used = cells.flatMap((value, at) => (value === undefined ? [] : [{ value, column: at + 1 }]))
    return {
      number: index + 1,
      columns: used.map(({ column }) => column),
      values: used.map(({ value }) => value),
      kinds: used.map(({ value }) => kindOf(value))
    }
  })

const none = undefined

describe("findHeader", () => {
  it.each([
    ["the first row", rows(["id", "name"], [1n, "ann"]), 0],
    ["below a title", rows(["Report"], ["id", "name", "sum"], [1n, "ann", 2.5]), 1],
    ["three quarters filled", rows(["a", "b", "c", none], [1n, 2n, 3n, 4n]), 0],
    ["less than three quarters", rows(["a", "b", none, none], [1n, 2n, 3n, 4n]), -1],
    ["half of it text", rows([1n, "text"], [2n, "more"]), -1],
    ["more than half of it text", rows(["a", "b", 2024n], [1n, 2n, 3n]), 0],
    ["dates are no text", rows(["2024-01-01", "2024-02-01", "x"], [1n, 2n, 3n]), -1],
    ["numbers alone", rows([1n, 2n], [3n, 4n]), -1],
    ["errors fill nothing", rows(["a", null, null], ["x", "y", "z"]), 1],
    ["blank texts fill nothing", rows(["a", " ", ""], ["x", "y", "z"]), 1],
    ["no rows", rows(), -1]
  ])("%s", (_, given, expected) => {
    expect(findHeader(given)).toBe(expected)
  })

  it("looks at 25 rows", () => {
    const numbers = Array.from({ length: 24 }, () => [1n, 2n])
    expect(findHeader(rows(...numbers, ["a", "b"]))).toBe(24)
    expect(findHeader(rows(...numbers, [1n, 2n], ["a", "b"]))).toBe(-1)
    // A wider row behind them changes nothing.
    expect(findHeader(rows(["a", "b"], ...numbers, ["a", "b", "c", "d"]))).toBe(0)
  })
})

describe("columnNames", () => {
  it.each([
    [["id", "name"], 1, ["id", "name"]],
    [["a", "a", "A"], 1, ["a", "a_2", "A_3"]],
    [["a", none, none], 3, ["a", "D", "E"]],
    [["D", none], 3, ["D", "D_2"]],
    [["a", "a_2", "a"], 1, ["a", "a_2", "a_3"]],
    [["a", "a", "a_2"], 1, ["a", "a_3", "a_2"]],
    [["É", "é"], 1, ["É", "é_2"]],
    [["__proto__", "constructor", "__proto__"], 1, ["__proto__", "constructor", "__proto___2"]]
  ])("%j from column %d: %j", (headers, left, expected) => {
    expect(columnNames(headers, left)).toEqual(expected)
  })

  it("finds the next free name at once, however many are taken", () => {
    const taken = Array.from({ length: 40_000 }, (_, at) => `a_${at + 2}`)
    const names = columnNames([...taken, ...taken.map(() => "a")], 1)
    expect(new Set(names).size).toBe(80_000)
    expect(names.at(-1)).toBe("a_80000")
  })

  it("are always as many, unique but for case, and first ones kept", () => {
    const header = fc.option(fc.constantFrom("a", "A", "a_2", "b", "C", "c_2", "D"), { nil: undefined })
    fc.assert(
      fc.property(fc.array(header, { maxLength: 12 }), (headers) => {
        const names = columnNames(headers, 1)
        expect(names).toHaveLength(headers.length)
        expect(new Set(names.map((name) => name.toLowerCase())).size).toBe(headers.length)
        headers.forEach((each, at) => {
          if (each === undefined) return
          const first = headers.findIndex((other) => other?.toLowerCase() === each.toLowerCase()) === at
          if (first) expect(names[at]).toBe(each)
        })
      })
    )
  })
})

describe("headerText", () => {
  it.each([
    ["  a b ", Kind.text, "a b"],
    ["a\nb", Kind.text, "a\nb"],
    [" ", Kind.text, none],
    [2024n, Kind.integer, "2024"],
    [0.2, Kind.real, "0.2"],
    [1n, Kind.boolean, "TRUE"],
    [0n, Kind.boolean, "FALSE"],
    ["2024-01-15", Kind.moment, "2024-01-15"],
    [null, Kind.error, none],
    ["a\u0000b", Kind.text, "a\ufffdb"]
  ])("%s", (value, kind, expected) => {
    expect(headerText(value, kind)).toBe(expected)
  })
})
