import { describe, expect, it } from "@effect/vitest"
import { moveFormula } from "../../../src/Adapter/Excel/Formula.js"

describe("moveFormula, two rows down and one column right", () => {
  it.each([
    ["A1+1", "B3+1"],
    ["$A$1+A$1+$A1", "$A$1+B$1+$A3"],
    ["SUM(A1:B2)", "SUM(B3:C4)"],
    ["SUM(A:A)+SUM($B:C)", "SUM(B:B)+SUM($B:D)"],
    ["SUM(1:3)+SUM($1:3)", "SUM(3:5)+SUM($1:5)"],
    ["LOG10(A1)", "LOG10(B3)"],
    ['"A1"&A1&"say ""B2"""', '"A1"&B3&"say ""B2"""'],
    ["'A1 sheet'!A1", "'A1 sheet'!B3"],
    ["Sheet1!A1*Data_2!B2", "Sheet1!B3*Data_2!C4"],
    ["Sales[A1]+Sales[[#This Row],[B2]]", "Sales[A1]+Sales[[#This Row],[B2]]"],
    ["tax_A1+A1_tax+A1.b", "tax_A1+A1_tax+A1.b"],
    ["1E5+1.5*A1", "1E5+1.5*B3"],
    ["XFD1", "#REF!"],
    ["A1048575", "#REF!"],
    ["IF(A1>2,TRUE,B1)", "IF(B3>2,TRUE,C3)"],
    ["Größe1+A1", "Größe1+B3"],
    ["", ""]
  ])("%s → %s", (formula, expected) => {
    expect(moveFormula(formula, 2, 1)).toBe(expected)
  })

  it("a formula that is not moved stays", () => {
    expect(moveFormula("a1+XFD1", 0, 0)).toBe("a1+XFD1")
  })

  it("an endless formula stays", () => {
    for (const formula of ["[".repeat(1e6), '"'.repeat(1e6 + 1), "A1+".repeat(1e6)])
      expect(moveFormula(formula, 1, 1)).toBe(formula)
  })
})
