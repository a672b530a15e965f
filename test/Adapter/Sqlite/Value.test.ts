import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import Driver from "../../../src/Adapter/Sqlite/Driver.js"
import { type Native, toBinding, toCell } from "../../../src/Adapter/Sqlite/Value.js"

const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })

describe("stored values", () => {
  it.each<readonly [Native, unknown]>([
    [null, null],
    [0n, 0],
    [-1n, -1],
    [9_007_199_254_740_991n, 9_007_199_254_740_991],
    [-9_007_199_254_740_991n, -9_007_199_254_740_991],
    [9_007_199_254_740_992n, "9007199254740992"],
    [-9_007_199_254_740_992n, "-9007199254740992"],
    [9_223_372_036_854_775_807n, "9223372036854775807"],
    [1.5, 1.5],
    [Number.POSITIVE_INFINITY, "Infinity"],
    [Number.NEGATIVE_INFINITY, "-Infinity"],
    ["", ""],
    ["1", "1"]
  ])("%s → %j", (native, cell) => expect(toCell(native)).toEqual(cell))

  it("an integer is a number exactly where JSON keeps it, and its digits always", () => {
    fc.assert(
      fc.property(int64, (value) => {
        const cell = toCell(value)
        expect(typeof cell === "number").toBe(value > -(2n ** 53n) && value < 2n ** 53n)
        expect(BigInt(String(cell))).toBe(value)
        expect(JSON.parse(JSON.stringify(cell))).toBe(cell)
      })
    )
  })

  it("a real is read back the same", () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true }), (value) => {
        const cell = toCell(value)
        // JSON has no negative zero.
        expect(Number(JSON.parse(JSON.stringify(cell))) + 0).toBe(value + 0)
      })
    )
  })
})

describe("parameters", () => {
  const database = new Driver(":memory:")
  const statement = database.prepare("select typeof(?1) as type, ?1 as value").safeIntegers(true).raw(true)
  const through = (value: string | number | bigint | boolean | null) => {
    const [type, stored] = statement.get({ 1: toBinding(value) }) as [string, Native]
    return { type, cell: toCell(stored) }
  }

  it.each<readonly [string | number | bigint | boolean | null, string, unknown]>([
    [null, "null", null],
    [9_007_199_254_740_993n, "integer", "9007199254740993"],
    [-(2n ** 63n), "integer", "-9223372036854775808"],
    // As SQLite takes a literal of so many digits.
    [2n ** 63n, "real", 2 ** 63],
    [true, "integer", 1],
    [false, "integer", 0],
    [5, "integer", 5],
    [-0, "integer", 0],
    [1.5, "real", 1.5],
    [9_007_199_254_740_991, "integer", 9_007_199_254_740_991],
    [-(2 ** 63), "integer", "-9223372036854775808"],
    [2 ** 63, "real", 2 ** 63],
    [1e21, "real", 1e21],
    ["", "text", ""],
    ["7", "text", "7"],
    ["a\u0000b", "text", "a\u0000b"]
  ])("%s is bound as %s", (value, type, cell) => expect(through(value)).toEqual({ type, cell }))

  it("come back as they went", () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.maxSafeInteger(), fc.double({ noNaN: true, noDefaultInfinity: true })),
        (value) => {
          const { cell, type } = through(value)
          expect(Number(cell) + 0).toBe(value + 0)
          if (!Number.isInteger(value)) expect(type).toBe("real")
        }
      )
    )
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (value) => void expect(through(value).cell).toBe(value))
    )
  })
})
