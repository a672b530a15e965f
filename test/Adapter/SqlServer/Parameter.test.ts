import { describe, expect, it } from "@effect/vitest"
import { typed } from "../../../src/Adapter/SqlServer/Parameter.js"

const declared = (value: unknown) => {
  const { length, type, value: sent } = typed(value)
  return [
    type.declaration({
      name: "",
      output: false,
      type,
      value: sent,
      ...(length === undefined ? {} : { length })
    }),
    sent
  ]
}

describe("parameters", () => {
  const table: ReadonlyArray<readonly [unknown, string, unknown]> = [
    ["é😀", "nvarchar(4000)", "é😀"],
    ["", "nvarchar(4000)", ""],
    ["9007199254740993", "nvarchar(4000)", "9007199254740993"],
    [null, "nvarchar(4000)", null],
    [undefined, "nvarchar(4000)", null],
    [true, "bit", true],
    [5, "int", 5],
    [-0, "int", -0],
    [-(2 ** 31), "int", -(2 ** 31)],
    [2 ** 31 - 1, "int", 2 ** 31 - 1],
    [2 ** 31, "bigint", 2 ** 31],
    [9007199254740991, "bigint", 9007199254740991],
    [2 ** 53, "float", 2 ** 53],
    [1.5, "float", 1.5],
    [1e300, "float", 1e300],
    [9223372036854775807n, "bigint", 9223372036854775807n],
    [10n ** 20n, "float", 1e20],
    [-(10n ** 20n) - 1n, "nvarchar(4000)", "-100000000000000000001"]
  ]
  for (const [value, declaration, sent] of table)
    it(`${typeof value} ${String(value).slice(0, 20)}: ${declaration}`, () =>
      expect(declared(value)).toEqual([declaration, sent]))

  it("long text has no length", () => expect(declared("x".repeat(4001))[0]).toBe("nvarchar(max)"))

  it("programs may give dates and bytes", () => {
    expect(declared(new Date(0))[0]).toMatch(/^datetimeoffset/)
    expect(declared(new Uint8Array([1, 2]))[0]).toBe("varbinary(8000)")
    expect(declared(new Uint8Array(9000))[0]).toBe("varbinary(max)")
  })
})
