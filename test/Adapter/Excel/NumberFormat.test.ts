import { describe, expect, it } from "@effect/vitest"
import { builtinKind, type FormatKind, kindOfCode } from "../../../src/Adapter/Excel/NumberFormat.js"

const table: ReadonlyArray<readonly [code: string, kind: FormatKind]> = [
  ["General", "number"],
  ["0", "number"],
  ["#,##0.00", "number"],
  ["0.00E+00", "number"],
  ["##0.0E-0", "number"],
  ["# ?/?", "number"],
  ["0%", "number"],
  ["@", "number"],
  ['0.0"m"', "number"],
  ["0.0\\d", "number"],
  ['"day "0', "number"],
  ["[Red]0.0", "number"],
  ["[Blue][>100]0.0;[Magenta]0", "number"],
  ["_-* #,##0.00\\ [$€-407]_-;\\-* #,##0.00\\ [$€-407]_-", "number"],
  ["[$DKK] #,##0", "number"],
  ['General" days"', "number"],
  ["Standard", "number"],
  ['0;-0;;@" sold"', "number"],
  ["0_h;0_d", "number"],
  ["*d0", "number"],
  ["yyyy-mm-dd", "date"],
  ["dd/mm/yyyy", "date"],
  ["[$-409]d-mmm-yy;@", "date"],
  ["[$-F800]dddd\\,\\ mmmm\\ dd\\,\\ yyyy", "date"],
  ["mmm\\ yyyy", "date"],
  ["mmmm", "date"],
  ["d", "date"],
  ["[$-41E]d mmm bbbb", "date"],
  ['[$-411]ggge"年"m"月"d"日"', "date"],
  ["aaaa", "date"],
  ["YYYY/MM/DD", "date"],
  ["yyyy-mm-dd hh:mm:ss", "datetime"],
  ["yyyy\\-mm\\-dd\\ hh:mm:ss.000", "datetime"],
  ["m/d/yy h:mm", "datetime"],
  ["d.m.yyyy h:mm AM/PM", "datetime"],
  ["h:mm", "clock"],
  ["h:mm:ss AM/PM", "clock"],
  ["hh\\:mm", "clock"],
  ["mm:ss", "clock"],
  ["mm:ss.0", "clock"],
  ["ss", "clock"],
  ["[h]:mm:ss", "clock"],
  ["[hh]:mm", "clock"],
  ["[mm]:ss", "clock"],
  ["[s]", "clock"],
  ["[$-F400]h:mm:ss\\ AM/PM", "clock"]
]

describe("NumberFormat", () => {
  it.each(table)("%s is a %s", (code, kind) => {
    expect(kindOfCode(code)).toBe(kind)
  })

  it("the formats named by number alone", () => {
    const ids = (wanted: FormatKind) =>
      Array.from({ length: 164 }, (_, id) => id).filter((id) => builtinKind(id) === wanted)
    expect(ids("datetime")).toEqual([22])
    expect(ids("clock")).toEqual([18, 19, 20, 21, 32, 33, 34, 35, 45, 46, 47])
    expect(ids("date")).toEqual([14, 15, 16, 17, 27, 28, 29, 30, 31, 36, 50, 51, 52, 53, 54, 55, 56, 57, 58])
  })

  it("endless codes are read at once", () => {
    for (const code of ["h".repeat(1e6), "[".repeat(1e6), '"'.repeat(1e6 + 1), "m".repeat(1e6)])
      expect(kindOfCode(code)).toBe("number")
  })
})
