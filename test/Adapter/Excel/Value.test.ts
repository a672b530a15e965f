import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import type { FormatKind } from "../../../src/Adapter/Excel/NumberFormat.js"
import {
  decodeEscapes,
  isoText,
  Kind,
  momentText,
  quickNumber,
  storedNumber,
  typeOfKinds
} from "../../../src/Adapter/Excel/Value.js"

const moments: ReadonlyArray<
  readonly [serial: number, kind: FormatKind, date1904: boolean, text: string | undefined]
> = [
  [45_306, "date", false, "2024-01-15"],
  [45_306.4375, "datetime", false, "2024-01-15T10:30:00"],
  [45_306.4375, "date", false, "2024-01-15T10:30:00"],
  [45_306, "datetime", false, "2024-01-15T00:00:00"],
  [45_306.43750694444, "datetime", false, "2024-01-15T10:30:00.6"],
  [45_657.99999998842, "datetime", false, "2024-12-31T23:59:59.999"],
  [45_657.99999999999, "datetime", false, "2025-01-01T00:00:00"],
  [0, "date", false, "1899-12-31"],
  [1, "date", false, "1900-01-01"],
  [59, "date", false, "1900-02-28"],
  [60, "date", false, "1900-02-29"],
  [60.5, "datetime", false, "1900-02-29T12:00:00"],
  [61, "date", false, "1900-03-01"],
  [2_958_465, "date", false, "9999-12-31"],
  [2_958_465.9999, "datetime", false, "9999-12-31T23:59:51.36"],
  [2_958_466, "date", false, undefined],
  [1e300, "date", false, undefined],
  [-1, "date", false, undefined],
  [-0.5, "clock", false, undefined],
  [Number.NaN, "date", false, undefined],
  [0, "date", true, "1904-01-01"],
  [43_844, "date", true, "2024-01-15"],
  [2_957_003, "date", true, "9999-12-31"],
  [2_957_004, "date", true, undefined],
  [0, "clock", false, "00:00:00"],
  [0.5, "clock", false, "12:00:00"],
  [1.5, "clock", false, "36:00:00"],
  [4.167361111111111, "clock", false, "100:01:00"],
  [0.0208333333333333, "clock", false, "00:30:00"],
  [0.9999884259259259, "clock", false, "23:59:59"],
  [1 / 86_400_000, "clock", false, "00:00:00.001"]
]

describe("Value", () => {
  it.each(moments)("serial %d as %s, 1904 %s: %s", (serial, kind, date1904, text) => {
    expect(momentText(serial, kind, date1904)).toBe(text)
  })

  it("every day has the date that the calendar gives it", () => {
    fc.assert(
      fc.property(fc.integer({ min: 61, max: 2_958_465 }), (day) => {
        const expected = new Date(Date.UTC(1899, 11, 30) + day * 86_400_000).toISOString().slice(0, 10)
        expect(momentText(day, "date", false)).toBe(expected)
      })
    )
  })

  it("a time of day is told to the millisecond", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 61, max: 80_000 }),
        fc.integer({ min: 0, max: 86_399_999 }),
        (day, ms) => {
          const text = momentText(day + ms / 86_400_000, "datetime", false)
          const expected = new Date(Date.UTC(1899, 11, 30) + day * 86_400_000 + ms).toISOString().slice(0, 23)
          expect(text).toBe(
            expected
              .replace(/\.?0+$/, (zeros) => (zeros.startsWith(".") ? "" : zeros.replace(/0+$/, "")))
              .replace(/\.$/, "")
          )
        }
      )
    )
  })

  it.each([
    ["2024-01-15", "date", "2024-01-15"],
    ["2024-01-15T10:30:00", "datetime", "2024-01-15T10:30:00"],
    ["2024-01-15T10:30:00.500", "datetime", "2024-01-15T10:30:00.5"],
    ["2024-01-15T00:00:00", "date", "2024-01-15"],
    ["2024-01-15T00:00:00", "datetime", "2024-01-15T00:00:00"],
    ["2024-01-15", "datetime", "2024-01-15T00:00:00"],
    ["2024-01-15T10:30", "number", "2024-01-15T10:30:00"],
    ["2024-01-15T10:30:00Z", "datetime", "2024-01-15T10:30:00"],
    ["10:30:00", "clock", "10:30:00"],
    ["T10:30", "clock", "10:30:00"],
    ["something", "date", "something"]
  ] as const)("the ISO date %s as %s: %s", (text, kind, expected) => {
    expect(isoText(text, kind)).toBe(expected)
  })

  it.each([
    ["5", 5],
    ["5.0", 5],
    ["-0", 0],
    ["1E-7", 1e-7],
    ["5e-324", 5e-324],
    ["1E+300", 1e300],
    ["1E5", 100_000],
    ["0.30000000000000004", 0.1 + 0.2],
    ["9007199254740991", 9_007_199_254_740_991],
    ["9007199254740993", 9_007_199_254_740_993n],
    ["-9223372036854775808", -9_223_372_036_854_775_808n],
    ["9223372036854775808", "9223372036854775808"],
    ["1.2345678901234567E+16", 12_345_678_901_234_568],
    ["1e999", "1e999"],
    ["abc", "abc"],
    ["0x10", "0x10"],
    ["", ""],
    ["NaN", "NaN"],
    ["Infinity", "Infinity"]
  ])("the number %j", (text, expected) => {
    expect(storedNumber(text)).toBe(expected)
  })

  it.each([
    ["digits before a letter", `${"1".repeat(2_000_000)}x`],
    ["digits on both sides of a point", `${"1".repeat(1_000_000)}.${"1".repeat(1_000_000)}x`],
    ["digits", "7".repeat(5_000_000)]
  ])("endless text: %s", (_, text) => {
    expect(storedNumber(text) === text).toBe(true)
  })

  it("an integer behind endless zeros", () => {
    expect(storedNumber(`${"0".repeat(2_000_000)}9223372036854775807`)).toBe(9_223_372_036_854_775_807n)
  })

  it("endless zeros of a second", () => {
    const digits = `${"0".repeat(2_000_000)}1`
    expect(isoText(`2024-02-29T13:05:01.${digits}000`, "datetime") === `2024-02-29T13:05:01.${digits}`).toBe(
      true
    )
  })

  it("a number read from bytes is the one that the text spells, or is left to the text", () => {
    const agrees = (text: string) => {
      const quick = quickNumber(Buffer.from(text), 0, text.length)
      if (!Number.isNaN(quick)) expect(quick).toBe(Number(text) === 0 ? 0 : Number(text))
      return Number.isNaN(quick)
    }
    fc.assert(fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (n) => void agrees(String(n))))
    fc.assert(
      fc.property(fc.integer(), fc.integer({ min: 0, max: 6 }), (n, digits) => {
        expect(agrees((n / 10 ** digits).toFixed(digits))).toBe(false)
      })
    )
    for (const text of [
      "",
      "-",
      ".",
      "-.",
      "1.2.3",
      "1e5",
      "+1",
      " 1",
      "1 ",
      "--1",
      "0x1",
      "9007199254740993"
    ])
      expect(agrees(text), text).toBe(true)
  })

  it("escapes", () => {
    expect(decodeEscapes("a_x000D_\nb")).toBe("a\r\nb")
    expect(decodeEscapes("_x0041_BC")).toBe("ABC")
    expect(decodeEscapes("_x005F_x000D_")).toBe("_x000D_")
    expect(decodeEscapes("_xD83D__xDE00_")).toBe("😀")
    expect(decodeEscapes("_x00g1_ _x12_")).toBe("_x00g1_ _x12_")
  })

  it.each([
    [0, "ANY"],
    [Kind.error | Kind.uncached, "ANY"],
    [Kind.integer, "INTEGER"],
    [Kind.integer | Kind.error, "INTEGER"],
    [Kind.real, "REAL"],
    [Kind.integer | Kind.real, "REAL"],
    [Kind.text, "TEXT"],
    [Kind.moment, "TEXT"],
    [Kind.text | Kind.moment, "TEXT"],
    [Kind.boolean, "BOOLEAN"],
    [Kind.boolean | Kind.integer, "ANY"],
    [Kind.text | Kind.integer, "ANY"],
    [Kind.moment | Kind.real, "ANY"]
  ])("kinds %d make a column of type %s", (kinds, type) => {
    expect(typeOfKinds(kinds, true)).toBe(type)
  })

  it("reals beside an integer that they cannot hold", () => {
    expect(typeOfKinds(Kind.integer | Kind.real, false)).toBe("ANY")
  })
})
