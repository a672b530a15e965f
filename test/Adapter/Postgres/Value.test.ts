import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import {
  readArray,
  rewriteArray,
  rewriteComposite,
  rewriteMultirange,
  rewriteRange
} from "../../../src/Adapter/Postgres/Container.js"
import { readJson } from "../../../src/Adapter/Postgres/ExactJson.js"
import { timestamp, timestamptz, timetz, utcText } from "../../../src/Adapter/Postgres/Timestamp.js"
import { lookup, Types } from "../../../src/Adapter/Postgres/Type.js"
import { decoder, type Scalar, type Shape, scalars } from "../../../src/Adapter/Postgres/Value.js"
import { Frames } from "../../../src/Adapter/Postgres/Wire.js"

const table = (of: string, f: (text: string) => unknown, rows: ReadonlyArray<readonly [string, unknown]>) =>
  describe(of, () => {
    it.each(rows)("%s", (text, wanted) => expect(f(text)).toEqual(wanted))
  })

const scalar =
  (name: Scalar, moneyDigits = 2) =>
  (text: string) =>
    scalars[name](text, { moneyDigits })

table("integer", scalar("integer"), [
  ["9007199254740991", 9007199254740991],
  ["9007199254740992", "9007199254740992"],
  ["-9223372036854775808", "-9223372036854775808"],
  ["4294967295", 4294967295]
])

table("float", scalar("float"), [
  ["0.1", 0.1],
  ["1e+300", 1e300],
  ["NaN", "NaN"],
  ["-Infinity", "-Infinity"]
])

table("money", scalar("money"), [
  ["$1,234,567.10", "1234567.10"],
  ["-$0.05", "-0.05"],
  ["-1.234,50 €", "-1234.50"],
  ["($12.00)", "-12.00"],
  ["−1 234,50 kr", "-1234.50"]
])
table("money without decimals", scalar("money", 0), [["￥-1,235", "-1235"]])
table("money with three", scalar("money", 3), [["KD0.005", "0.005"]])

table("timestamp", timestamp, [
  ["2024-02-29 13:05:01.5", "2024-02-29T13:05:01.5"],
  ["0044-03-15 12:00:00 BC", "0044-03-15 12:00:00 BC"],
  ["294276-12-31 23:59:59.999999", "294276-12-31 23:59:59.999999"],
  ["-infinity", "-infinity"]
])

table("timestamptz", timestamptz, [
  ["2024-02-29 13:05:01.5+00", "2024-02-29T13:05:01.5Z"],
  ["2024-02-29 00:00:00+07", "2024-02-28T17:00:00Z"],
  ["2024-12-31 23:30:00-05", "2025-01-01T04:30:00Z"],
  ["2024-02-29 13:05:01.000001-11:45", "2024-03-01T00:50:01.000001Z"],
  ["1800-06-01 07:03:58-04:56:02", "1800-06-01T12:00:00Z"],
  ["0001-12-31 19:03:58-04:56:02 BC", "0001-01-01T00:00:00Z"],
  ["0001-01-01 00:00:00+00", "0001-01-01T00:00:00Z"],
  ["0001-01-01 02:00:00+05", "0001-12-31 21:00:00+00 BC"],
  ["9999-12-31 23:30:00-05", "10000-01-01 04:30:00+00"],
  ["0044-03-15 12:00:00+00 BC", "0044-03-15 12:00:00+00 BC"],
  ["infinity", "infinity"]
])

table("timetz", timetz, [
  ["13:05:01+07", "13:05:01+07:00"],
  ["13:05:01.5+05:30", "13:05:01.5+05:30"],
  ["24:00:00-15:59:59", "24:00:00-15:59:59"]
])

describe("moments against the calendar of the platform", () => {
  it("any offset, any second", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: -62_135_596_800 + 86_400, max: 253_402_300_799 - 86_400 }),
        fc.integer({ min: -15 * 3600, max: 15 * 3600 }),
        (seconds, offset) => {
          const local = new Date((seconds + offset) * 1000).toISOString().slice(0, 19).replace("T", " ")
          const [sign, size] = [offset < 0 ? "-" : "+", Math.abs(offset)]
          const part = (n: number) => String(n).padStart(2, "0")
          const zone = `${sign}${part(Math.floor(size / 3600))}:${part(Math.floor(size / 60) % 60)}:${part(size % 60)}`
          expect(timestamptz(local + zone)).toBe(`${new Date(seconds * 1000).toISOString().slice(0, 19)}Z`)
        }
      )
    )
  })
})

table("json", readJson, [
  ['{"a":[1,2.5,true,null]}', { a: [1, 2.5, true, null] }],
  ["9007199254740993", "9007199254740993"],
  ["[1e400]", "[1e400]"],
  ["[1e-400]", "[1e-400]"],
  ["[0.1234567890123456789]", "[0.1234567890123456789]"],
  ["[0.12345678901234568]", [0.12345678901234568]],
  ["[1.10, 1e3, 100000000000000000000, 0.000000000000000000, -0]", [1.1, 1000, 1e20, 0, -0]],
  ['{"a":1,"a":2}', '{"a":1,"a":2}'],
  ['{"a":1,"\\u0061":2}', '{"a":1,"\\u0061":2}'],
  ['[{"a":1},{"a":2}]', [{ a: 1 }, { a: 2 }]],
  ['{"a":{"a":1},"b":[{"a":"a"}],"c":"a"}', { a: { a: 1 }, b: [{ a: "a" }], c: "a" }],
  ['{"k":"9007199254740993 \\" {"}', { k: '9007199254740993 " {' }],
  ['"\\\\"', "\\"],
  ["null", null],
  ["[".repeat(600) + "]".repeat(600), "[".repeat(600) + "]".repeat(600)]
])

describe("json with endless numbers", () => {
  it.each([
    ["zeros before a last digit", `[1.${"0".repeat(3_000_000)}1]`],
    ["zeros behind others", `[0.${"10".repeat(1_000_000)}${"0".repeat(2_000_000)}1]`],
    ["backslashes", `["${"\\".repeat(2_000_000)}", 9007199254740993]`]
  ])("stays text: %s", (_, text) => {
    expect(readJson(text) === text).toBe(true)
  })

  it("is a value where only zeros follow", () => {
    expect(readJson(`[1.${"0".repeat(3_000_000)}]`)).toEqual([1])
  })
})

describe("json against the platform", () => {
  it("whatever the platform writes is read as the same value", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value)
        expect(JSON.stringify(readJson(text))).toBe(JSON.stringify(JSON.parse(text)))
      })
    )
  })
})

table("array", (text) => readArray(text, ","), [
  ["{}", []],
  ["{1,NULL,3}", ["1", null, "3"]],
  ['{"a,b","c\\"d","e\\\\f","NULL","","{x}"," y "}', ["a,b", 'c"d', "e\\f", "NULL", "", "{x}", " y "]],
  [
    "[0:1][-1:0]={{1,2},{3,4}}",
    [
      ["1", "2"],
      ["3", "4"]
    ]
  ],
  ["{{},{}}", [[], []]]
])

describe("containers are written as they were read", () => {
  it("arrays", () => {
    const text = '[2:4]={"a b",NULL,"\\"\\\\"}'
    expect(rewriteArray(text, ",", (element) => element)).toBe(text)
    expect(rewriteArray('{"(1,1),(0,0)";"x y"}', ";", (element) => element)).toBe('{(1,1),(0,0);"x y"}')
  })
  it("composites", () => {
    const text = '(1,"a b",,"c""d","e\\\\f","")'
    expect(rewriteComposite(text, [null, null, null, null, null, null])).toBe(text)
    expect(rewriteComposite('(1,"2024-01-01 00:00:00+02")', [null, utcText])).toBe(
      '(1,"2023-12-31 22:00:00+00")'
    )
  })
  it("ranges", () => {
    expect(rewriteRange("empty", utcText)).toBe("empty")
    expect(rewriteRange('["2024-01-01 00:00:00+02",)', utcText)).toBe('["2023-12-31 22:00:00+00",)')
    expect(
      rewriteMultirange(
        '{["2024-01-01 00:00:00+02","2024-01-02 00:00:00+02"),["2025-01-01 00:00:00+02",infinity)}',
        utcText
      )
    ).toBe('{["2023-12-31 22:00:00+00","2024-01-01 22:00:00+00"),["2024-12-31 22:00:00+00",infinity)}')
  })
})

describe("types", () => {
  const text: Shape = { _tag: "Scalar", scalar: "text" }
  it("the engine's own are known", () => {
    const types = new Types()
    expect(types.get(23)?.name).toBe("integer")
    expect(types.get(1020)).toEqual({
      name: "box[]",
      shape: { _tag: "Array", element: text, delimiter: ";" }
    })
    expect(types.missing([16, 1184, 3910, 6153])).toEqual([])
  })
  it("others are asked for part by part", () => {
    const types = new Types()
    expect(types.missing([50_000])).toEqual([50_000])
    // an array of composites of a domain over a moment and of itself
    types.learn([50_000], [["50000", "event[]", "b", "50001", ",", null, null, null]])
    expect(types.missing([50_000])).toEqual([50_001])
    types.learn([50_001], [["50001", "event", "c", null, null, null, null, "50002,50000"]])
    expect(types.missing([50_000])).toEqual([50_002])
    types.learn([50_002], [["50002", "moment", "d", null, null, "1184", null, null]])
    expect(types.missing([50_000])).toEqual([])
    types.settle([50_000])
    const { name, shape } = types.get(50_000) ?? { name: "", shape: text }
    expect(name).toBe("event[]")
    expect(decoder(shape, { moneyDigits: 2 })('{"(\\"2024-01-01 00:00:00+02\\",)"}')).toEqual([
      '("2023-12-31 22:00:00+00",)'
    ])
  })
  it("a source keeps those of its answers that cannot change", () => {
    const source = new Types()
    const answer = new Types(source)
    expect(answer.get(23)?.name).toBe("integer")
    answer.learn(
      [50_000, 50_001],
      [
        ["50000", "mood", "e", null, null, null, null, null],
        ["50001", "event", "c", null, null, null, null, "1184"]
      ]
    )
    answer.settle([50_000, 50_001])
    expect([answer.get(50_000)?.name, answer.get(50_001)?.name]).toEqual(["mood", "event"])
    const next = new Types(source)
    expect(next.get(50_000)?.name).toBe("mood")
    expect(next.missing([50_000, 50_001])).toEqual([50_001])
  })
  it("one that is gone is text", () => {
    const types = new Types()
    types.learn([50_000], [])
    expect(types.missing([50_000])).toEqual([])
    types.settle([50_000])
    expect(types.get(50_000)).toEqual({ name: "???", shape: text })
    expect(lookup).toContain("$1")
  })
})

describe("frames", () => {
  const message = (type: string, length: number) => {
    const bytes = Buffer.alloc(length + 1)
    bytes.write(type, 0)
    bytes.writeUInt32BE(length, 1)
    return bytes
  }
  it("a message beyond the limit is seen by its header, however the bytes are cut", () => {
    const stream = Buffer.concat([message("T", 20), message("D", 90), message("D", 4), message("D", 101)])
    for (let size = 1; size <= stream.length; size++) {
      const frames = new Frames()
      const found: Array<number> = []
      for (let at = 0; at < stream.length; at += size) {
        const length = frames.tooLarge(stream.subarray(at, at + size), 100)
        if (length !== null) found.push(length)
      }
      expect(found).toEqual([101])
    }
  })
})
