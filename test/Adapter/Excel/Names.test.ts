import { describe, expect, it } from "@effect/vitest"
import { everything, type Inventory, namedTables, resolve } from "../../../src/Adapter/Excel/Names.js"
import { lastRow } from "../../../src/Adapter/Excel/Reference.js"

const sheet = (name: string) => ({ name, hidden: false, part: name })
const range = (top: number, left: number, bottom: number, right: number) => ({ top, left, bottom, right })

const book: Inventory = {
  sheets: ["Data", "data2", "Sales", 'Bob\'s "x"', "a!b", "p$q", "Data$A1:B2", "Été"].map(sheet),
  tables: [
    {
      name: "sales",
      sheet: "Data",
      range: range(1, 1, 5, 3),
      headerRows: 1,
      totalsRows: 1,
      columns: ["a", "b", "c"]
    },
    {
      name: "Bare",
      sheet: "Data",
      range: range(9, 1, 12, 2),
      headerRows: 0,
      totalsRows: 0,
      columns: ["k", "v"]
    },
    { name: "Both", sheet: "Data", range: range(20, 1, 21, 1), headerRows: 1, totalsRows: 0, columns: ["n"] }
  ],
  names: [
    { name: "Block", scope: null, refersTo: "Data!$B$2:$C$9" },
    { name: "One", scope: null, refersTo: "'Bob''s \"x\"'!$B$2" },
    { name: "Column", scope: null, refersTo: "data!$B:$B" },
    { name: "Both", scope: null, refersTo: "Data!$A$1:$A$3" },
    { name: "Local", scope: "Data", refersTo: "Data!$A$1:$B$2" },
    { name: "Twice", scope: "Data", refersTo: "Data!$A$1:$B$2" },
    { name: "Twice", scope: "data2", refersTo: "data2!$A$1:$B$2" },
    { name: "Multi", scope: null, refersTo: "Data!$A$1:$A$2,Data!$C$1" },
    { name: "Constant", scope: null, refersTo: "0.25" },
    { name: "Broken", scope: null, refersTo: "#REF!" },
    { name: "Other", scope: null, refersTo: "[1]Data!$A$1" },
    { name: "Missing", scope: null, refersTo: "Nosuch!$A$1" },
    { name: "Calculated", scope: null, refersTo: "OFFSET(Data!$A$1,0,0,1,1)" },
    { name: "_xlnm.Print_Area", scope: "Data", refersTo: "Data!$A$1:$C$6" }
  ]
}

const target = (name: string) => {
  const resolution = resolve(book, name)
  if (resolution.kind !== "target") throw new Error(`${name}: ${JSON.stringify(resolution)}`)
  return { ...resolution.target, sheet: resolution.target.sheet.name }
}

describe("resolve", () => {
  it.each([
    ["Data", "Data"],
    ["DATA", "Data"],
    ["Data$", "Data"],
    ["été", "Été"],
    ["E\u0301te\u0301", "Été"],
    ["Data$A1:B2", "Data$A1:B2"]
  ])("%s is a sheet", (name, expected) => {
    expect(target(name)).toEqual({
      sheet: expected,
      range: everything,
      wholeRange: false,
      reading: { header: "find" }
    })
  })

  it("an exact match wins, then a sheet over a table, a table over a name", () => {
    expect(target("Sales").sheet).toBe("Sales")
    expect(target("sales")).toMatchObject({ sheet: "Data", range: range(1, 1, 4, 3) })
    expect(target("SALES").sheet).toBe("Sales")
    expect(target("Both").range).toEqual(range(20, 1, 21, 1))
  })

  it("tables", () => {
    expect(target("sales").reading).toEqual({ header: "first", names: ["a", "b", "c"] })
    expect(target("bare")).toMatchObject({
      range: range(9, 1, 12, 2),
      reading: { header: "given", names: ["k", "v"] }
    })
  })

  it.each([
    ["Data$B4:D9", "Data", range(4, 2, 9, 4), "first"],
    ["Data!B4:D9", "Data", range(4, 2, 9, 4), "letters"],
    ["data!$D$9:$B$4", "Data", range(4, 2, 9, 4), "letters"],
    ["Data!B4", "Data", range(4, 2, 4, 2), "letters"],
    ["Data!B:C", "Data", range(1, 2, lastRow, 3), "letters"],
    ["'Data'!B4", "Data", range(4, 2, 4, 2), "letters"],
    ["'Bob''s \"x\"'!B4", 'Bob\'s "x"', range(4, 2, 4, 2), "letters"],
    ['Bob\'s "x"!B4', 'Bob\'s "x"', range(4, 2, 4, 2), "letters"],
    ["a!b!A1", "a!b", range(1, 1, 1, 1), "letters"],
    ["p$q$A1:B2", "p$q", range(1, 1, 2, 2), "first"]
  ])("%s", (name, sheetName, expected, header) => {
    expect(target(name)).toMatchObject({
      sheet: sheetName,
      range: expected,
      wholeRange: true,
      reading: { header }
    })
  })

  it.each([
    ["Block", "Data", range(2, 2, 9, 3), "find"],
    ["One", 'Bob\'s "x"', range(2, 2, 2, 2), "none"],
    ["Column", "Data", range(1, 2, lastRow, 2), "find"],
    ["Local", "Data", range(1, 1, 2, 2), "find"],
    ["data2!Twice", "data2", range(1, 1, 2, 2), "find"]
  ])("the name %s", (name, sheetName, expected, header) => {
    expect(target(name)).toMatchObject({
      sheet: sheetName,
      range: expected,
      wholeRange: false,
      reading: { header }
    })
  })

  it.each(["Multi", "Constant", "Broken", "Other", "Missing", "Calculated"])("%s is no range", (name) => {
    const resolution = resolve(book, name)
    expect(resolution).toMatchObject({ kind: "no_table" })
    expect(JSON.stringify(resolution)).toContain("no single range")
  })

  it("what is nothing says why, or is unknown", () => {
    expect(resolve(book, "Twice")).toMatchObject({ kind: "no_table" })
    expect(resolve(book, "Data!A1:ZZZZ9")).toMatchObject({ kind: "no_table" })
    for (const mark of ["$", "!", "'!"])
      expect(resolve(book, mark.repeat(100_000))).toEqual({ kind: "unknown" })
    expect(resolve(book, "Data!A0")).toMatchObject({ kind: "no_table" })
    expect(resolve(book, "Nosuch")).toEqual({ kind: "unknown" })
    expect(resolve(book, "Nosuch!A1")).toEqual({ kind: "unknown" })
    expect(resolve(book, "")).toEqual({ kind: "unknown" })
    expect(resolve(book, "__proto__")).toEqual({ kind: "unknown" })
  })

  it("the tables that describe the workbook", () => {
    expect(resolve(book, "xl_sheets")).toEqual({ kind: "catalog", table: "xl_sheets" })
    expect(resolve(book, "XL_NAMES")).toEqual({ kind: "catalog", table: "xl_names" })
  })
})

describe("namedTables", () => {
  it("takes a workbook with many thousand names", () => {
    const names = Array.from({ length: 20_000 }, (_, n) => ({
      name: `Name_${n % 15_000}`,
      scope: n < 15_000 ? null : "Data",
      refersTo: "Data!$A$1:$B$2"
    }))
    expect(namedTables({ ...book, names }).filter(({ kind }) => kind === "name")).toHaveLength(15_000)
  })

  it("is every name that rows can be read from, as a statement may write it", () => {
    const all = namedTables(book)
    for (const { name } of all) expect(resolve(book, name).kind, name).toBe("target")
    expect(all.map(({ name }) => name)).toEqual([
      ...book.sheets.map(({ name }) => name),
      "sales",
      "Bare",
      "Both",
      "Block",
      "One",
      "Column",
      "Local",
      "Data!Twice",
      "data2!Twice"
    ])
  })
})
