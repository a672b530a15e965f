import { describe, expect, it } from "@effect/vitest"
import { partsOf, searchOf, spelt, sqliteName, transactName, workbookName } from "../../src/Catalog/Name.js"
import type { ObjectFact } from "../../src/CatalogReader.js"
import { reserved } from "../../src/Policy/TransactSql/Words.js"

describe("partsOf", () => {
  it.each([
    ["orders", ["orders"]],
    ["sales.orders", ["sales", "orders"]],
    ['"Sales"."Order Items"', ["Sales", "Order Items"]],
    ["[dbo].[Order]]s]", ["dbo", "Order]s"]],
    ["`a``b`", ["a`b"]],
    ['"a""b"', ['a"b']],
    ['"a.b".c', ["a.b", "c"]],
    ["Sheet1!A1:C3", ["Sheet1!A1:C3"]],
    [' sales . "Order Items" ', ["sales", "Order Items"]],
    [" order items . a ", ["order items", "a"]],
    // What is no such name stands for itself.
    ['a"b', ['a"b']],
    ["a..b", ["a..b"]],
    ["a.", ["a."]]
  ])("%s", (text, parts) => {
    expect(partsOf(text)).toEqual(parts)
  })

  it.each([" ", '"', '""', '"" ', "a ", "]]", "[", "` "])("reads many %j in one pass", (each) => {
    for (const text of [`${each.repeat(50_000)}[`, `"${each.repeat(50_000)}x`, `[${each.repeat(50_000)}x`])
      expect(partsOf(text)).toEqual([text])
  })
})

describe("searchOf", () => {
  it("finds everything without a name, or with a blank one", () => {
    expect(searchOf(undefined, 5)).toEqual({ likes: [], exact: false, limit: 5 })
    expect(searchOf("  ", 5)).toEqual({ likes: [], exact: false, limit: 5 })
  })

  it("takes a star for any characters and everything else for itself", () => {
    expect(searchOf("sales.ord*", 5)).toEqual({ likes: ["sales.ord%"], exact: false, limit: 5 })
    expect(searchOf("100%_*[a]\\", 5).likes).toEqual(["100\\%\\_%\\[a]\\\\"])
  })

  it("looks for a name as it is written and without its quotes", () => {
    expect(searchOf("my_table", 5)).toEqual({ likes: ["my\\_table"], exact: true, limit: 5 })
    expect(searchOf('"Order Items"', 5).likes).toEqual(['"Order Items"', "Order Items"])
    expect(searchOf('"a*b"', 5)).toMatchObject({ exact: true })
  })
})

describe("spelt", () => {
  const fact = (bare: string): ObjectFact => ({
    id: bare,
    name: bare,
    bare,
    qualified: `public.${bare}`,
    kind: "table",
    comment: null
  })

  it("prefers the spelling that was asked for", () => {
    const all = [fact("orders"), fact("Orders")]
    expect(spelt("Orders", all).map(({ bare }) => bare)).toEqual(["Orders"])
    expect(spelt("public.orders", all).map(({ bare }) => bare)).toEqual(["orders"])
    expect(spelt("ORDERS", all)).toEqual(all)
  })

  it("tells names apart that differ in blanks around them", () => {
    const all = [fact("Sales"), fact("Sales ")]
    expect(searchOf("Sales ", 5).likes).toEqual(["Sales ", "Sales"])
    expect(spelt("Sales ", all).map(({ bare }) => bare)).toEqual(["Sales "])
    expect(spelt("[Sales ]", all).map(({ bare }) => bare)).toEqual(["Sales "])
    expect(spelt("Sales  ", all).map(({ bare }) => bare)).toEqual(["Sales"])
  })
})

describe("quoting", () => {
  it("quotes only what must be, as each dialect does", () => {
    expect(["orders", "Orders", "order", "Order Items", 'a"b', "1a"].map(sqliteName)).toEqual([
      "orders",
      "Orders",
      '"order"',
      '"Order Items"',
      '"a""b"',
      '"1a"'
    ])
    expect(["Data", "Other Sheet", "a[1]", "2024"].map(workbookName)).toEqual([
      "Data",
      "[Other Sheet]",
      '"a[1]"',
      "[2024]"
    ])
    expect(
      ["orders", "user", "Order Items", "a]b", "@a", "#a", "a@b#c$"].map((name) =>
        transactName(name, reserved)
      )
    ).toEqual(["orders", "[user]", "[Order Items]", "[a]]b]", "[@a]", "[#a]", "a@b#c$"])
  })
})
