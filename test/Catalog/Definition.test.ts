import { describe, expect, it } from "@effect/vitest"
import { readIndex, readTable } from "../../src/Catalog/Definition.js"
import { conditionOf, stripParentheses } from "../../src/Catalog/Reader.js"

describe("readTable", () => {
  it("finds checks of columns and of the table, and nothing that only looks like one", () => {
    const { checks } = readTable(`create table "t (check)" (
      a int check (a > 0) default (1), -- check (no)
      b text default 'check (no)' check (b in ('x)', 'y')),
      "check" int,
      constraint c check ((a < 10 and (b <> ''))) /* check (no) */
    )`)
    expect(checks).toEqual(["a > 0", "b in ('x)', 'y')", "a < 10 and (b <> '')"])
  })

  it("finds what a column is computed from", () => {
    const { generated } = readTable(
      "create table t (a int, b int as (a + 1) stored, [c d] text generated always as (a || ')') virtual, e int default (a))"
    )
    expect([...generated]).toEqual([
      ["b", "a + 1"],
      ["c d", "a || ')'"]
    ])
  })

  it("reads a text that is no table without a fault", () => {
    expect(readTable("create view v as select 1").checks).toEqual([])
    expect(readTable("create table t as").checks).toEqual([])
    expect(readTable("create table t (a int check (a > 0").checks).toEqual(["a > 0"])
  })
})

describe("readIndex", () => {
  it("gives keys as they are written, and the condition", () => {
    expect(
      readIndex("create unique index i on t (a desc, lower(b, ','), \"c,d\") where a > 0 and (b)")
    ).toEqual({
      keys: ["a desc", "lower(b, ',')", '"c,d"'],
      where: "a > 0 and (b)"
    })
    expect(readIndex("create index i on t(a)")).toEqual({ keys: ["a"], where: null })
  })
})

describe("conditions", () => {
  it("are bared of what encloses the whole", () => {
    expect(conditionOf("CHECK ((a > 0))")).toBe("a > 0")
    expect(conditionOf("CHECK ((a > 0) AND (b > 0)) NOT VALID")).toBe("(a > 0) AND (b > 0)")
    expect(stripParentheses("((')' = a))")).toBe("')' = a")
    expect(stripParentheses("(a) or (b)")).toBe("(a) or (b)")
    expect(stripParentheses("()")).toBe("")
    expect(stripParentheses("( ( (a) ) )")).toBe("a")
    expect(stripParentheses("((a)")).toBe("((a)")
    const many = 500_000
    expect(stripParentheses(`${"( ".repeat(many)}a${" )".repeat(many)}`)).toBe("a")
    const endless = `CHECK (a)${" ".repeat(1_000_000)}x`
    expect(conditionOf(endless) === endless).toBe(true)
  })
})
