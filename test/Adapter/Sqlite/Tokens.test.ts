import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import Driver from "../../../src/Adapter/Sqlite/Driver.js"
import { parametersOf, tokens } from "../../../src/Adapter/Sqlite/Tokens.js"

const seen = (sql: string) => [...tokens(sql)].map(({ kind, text }) => [kind, text])

describe("tokens", () => {
  it.each<readonly [string, ReadonlyArray<readonly [string, string]>]>([
    ["", []],
    [" \t\r\n\f", []],
    [
      "select 1",
      [
        ["word", "select"],
        ["number", "1"]
      ]
    ],
    ["-- all of it", []],
    [
      "a -- b\n c",
      [
        ["word", "a"],
        ["word", "c"]
      ]
    ],
    ["a --b\r c", [["word", "a"]]],
    ["/* a */ b", [["word", "b"]]],
    ["a /* never closed", [["word", "a"]]],
    [
      "/* /* */ b */",
      [
        ["word", "b"],
        ["symbol", "*"],
        ["symbol", "/"]
      ]
    ],
    [
      "a-b",
      [
        ["word", "a"],
        ["symbol", "-"],
        ["word", "b"]
      ]
    ],
    ["'it''s'", [["string", "'it''s'"]]],
    [
      "'a\\' b",
      [
        ["string", "'a\\'"],
        ["word", "b"]
      ]
    ],
    ["'never closed", [["string", "'never closed"]]],
    ['"a""b"', [["quoted", 'a"b']]],
    ["`a``b`", [["quoted", "a`b"]]],
    ["[it's; --]", [["quoted", "it's; --"]]],
    [
      "[a]]",
      [
        ["quoted", "a"],
        ["symbol", "]"]
      ]
    ],
    ["x'00ff'", [["string", "x'00ff'"]]],
    [
      "xx'00'",
      [
        ["word", "xx"],
        ["string", "'00'"]
      ]
    ],
    [
      "? ?12 :a @b $c $1",
      [
        ["parameter", "?"],
        ["parameter", "?12"],
        ["parameter", ":a"],
        ["parameter", "@b"],
        ["parameter", "$c"],
        ["parameter", "$1"]
      ]
    ],
    [
      "1.5e-3+.5",
      [
        ["number", "1.5e-3"],
        ["symbol", "+"],
        ["number", ".5"]
      ]
    ],
    [
      "naïve 更新",
      [
        ["word", "naïve"],
        ["word", "更新"]
      ]
    ],
    [
      "a;b",
      [
        ["word", "a"],
        ["symbol", ";"],
        ["word", "b"]
      ]
    ]
  ])("%j", (sql, expected) => expect(seen(sql)).toEqual(expected))

  it("stand in the text where they say, in order, and never overlap", () => {
    const text = fc.string({
      unit: fc.constantFrom(
        "'",
        '"',
        "`",
        "[",
        "]",
        "-",
        "/",
        "*",
        "\n",
        " ",
        "a",
        "1",
        "?",
        ":",
        ";",
        ".",
        "é",
        "x"
      )
    })
    fc.assert(
      fc.property(text, (sql) => {
        let end = 0
        for (const { start } of tokens(sql)) {
          expect(start).toBeGreaterThanOrEqual(end)
          end = start + 1
        }
        expect(end).toBeLessThanOrEqual(sql.length)
      })
    )
  })

  it("a text in quotes is one token, whatever it holds", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (text) => {
        expect(seen(`'${text.replaceAll("'", "''")}'`)).toHaveLength(1)
        expect(seen(`"${text.replaceAll('"', '""')}"`)).toEqual([["quoted", text]])
        expect(seen(`/*${text.replaceAll("*/", "")}*/`.replace("**/", "*/"))).toEqual([])
      })
    )
  })
})

describe("parameters", () => {
  it.each([
    ["select 1", 0],
    ["select ?, ?", 2],
    ["select ?3", 3],
    ["select ?2, ?", 3],
    ["select ?, ?1", 1],
    ["select '?', \"?\", [?], `?` -- ?\n /* ? */", 0],
    ["select ?||'?'||?", 2]
  ])("%s asks for %i", (sql, count) => expect(parametersOf(sql).count).toBe(count))

  it("a named one is told", () => {
    for (const sql of ["select :a", "select @a", "select $a", "select ?, :b"])
      expect(parametersOf(sql).named).toMatch(/^[:@$][ab]$/)
    expect(parametersOf("select ?1, ?").named).toBeUndefined()
  })

  it("are counted as SQLite counts them", () => {
    const database = new Driver(":memory:")
    const piece = fc.constantFrom("?", "?1", "?2", "?5", "'?'", "x'00'", "1", "null", "/* ? */ 2", "3 -- ?\n")
    fc.assert(
      fc.property(fc.array(piece, { minLength: 1, maxLength: 8 }), (pieces) => {
        const sql = `select ${pieces.join(", ")}`
        const { anonymous, count, numbered } = parametersOf(sql)
        const named = Object.fromEntries([...numbered].map((position) => [position, position]))
        const values = [...anonymous, ...(numbered.size > 0 ? [named] : [])]
        // The driver refuses a value too many or too few.
        const row = database
          .prepare(sql)
          .raw(true)
          .get(...values) as ReadonlyArray<unknown>
        expect([...anonymous, ...numbered].sort((a, b) => a - b)).toEqual(
          Array.from({ length: count }, (_, index) => index + 1)
        )
        // Each parameter has the value of its own position.
        const expected = pieces.flatMap((piece) => (/^\?\d/.test(piece) ? [Number(piece.slice(1))] : []))
        expect(row.filter((_, index) => /^\?\d/.test(pieces[index] ?? ""))).toEqual(expected)
      })
    )
  })
})
