import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import {
  columnOf,
  lastColumn,
  lastRow,
  lettersOf,
  parseRange,
  rangeText
} from "../../../src/Adapter/Excel/Reference.js"

describe("Reference", () => {
  it("letters", () => {
    expect([1, 26, 27, 52, 702, 703, 16_384].map(lettersOf)).toEqual([
      "A",
      "Z",
      "AA",
      "AZ",
      "ZZ",
      "AAA",
      "XFD"
    ])
    fc.assert(fc.property(fc.integer({ min: 1, max: lastColumn }), (n) => columnOf(lettersOf(n)) === n))
  })

  it.each([
    ["A1", { top: 1, left: 1, bottom: 1, right: 1 }],
    ["B2:D9", { top: 2, left: 2, bottom: 9, right: 4 }],
    ["$B$2:$D$9", { top: 2, left: 2, bottom: 9, right: 4 }],
    ["d9:b2", { top: 2, left: 2, bottom: 9, right: 4 }],
    ["B:D", { top: 1, left: 2, bottom: lastRow, right: 4 }],
    ["$3:$1", { top: 1, left: 1, bottom: 3, right: lastColumn }],
    ["XFD1048576", { top: lastRow, left: lastColumn, bottom: lastRow, right: lastColumn }]
  ])("%s", (text, range) => {
    expect(parseRange(text)).toEqual(range)
  })

  it.each(["", "A", "1", "A0", "XFE1", "A1048577", "ZZZZ1", "A1:B", "A1:B2:C3", "A1,B2", "R1C1", "Sheet1"])(
    "%j is no range",
    (text) => {
      expect(parseRange(text)).toBeUndefined()
    }
  )

  it("a range's text is read back", () => {
    const range = { top: 4, left: 28, bottom: 9, right: 30 }
    expect(rangeText(range)).toBe("AB4:AD9")
    expect(parseRange(rangeText(range))).toEqual(range)
  })
})
