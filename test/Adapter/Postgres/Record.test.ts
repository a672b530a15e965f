import { describe, expect, it } from "vitest"
import { holdsMoment, oidsOf, partOf, sample, shapeOf } from "../../../src/Adapter/Postgres/Record.js"

const bytes = (hex: string) => Buffer.from(hex.replace(/\s/g, ""), "hex")
const int = (value: number) => value.toString(16).padStart(8, "0")
const field = (oid: number, hex: string | null) =>
  int(oid) + (hex === null ? "ffffffff" : int(hex.length / 2) + hex)
const record = (...fields: ReadonlyArray<string>) => int(fields.length) + fields.join("")
const records = (...elements: ReadonlyArray<string | null>) =>
  [int(1), int(1), int(2249), int(elements.length), int(1)].join("") +
  elements.map((hex) => (hex === null ? "ffffffff" : int(hex.length / 2) + hex)).join("")

const moment = field(1184, "0000000000000000")

describe("the binary form of a record", () => {
  it("names the types of its fields, also of what is null", () => {
    expect(partOf(2249, bytes(record(moment, field(25, null))))).toEqual({
      _tag: "Record",
      fields: [1184, 25]
    })
    expect(partOf(2249, bytes(record()))).toEqual({ _tag: "Record", fields: [] })
  })

  it("goes into records and arrays of them", () => {
    const inner = record(field(23, "00000001"), field(2287, records(null, record(moment))))
    const part = partOf(2249, bytes(record(field(2249, inner), field(2249, null))))
    expect(part).toEqual({
      _tag: "Record",
      fields: [
        {
          _tag: "Record",
          fields: [23, { _tag: "Records", element: { _tag: "Record", fields: [1184] } }]
        },
        2249
      ]
    })
    expect(oidsOf(part)).toEqual([23, 1184, 2249])
    expect(
      shapeOf(part, (oid) => ({ _tag: "Scalar", scalar: oid === 1184 ? "timestamptz" : "text" }))
    ).toMatchObject({
      fields: [{ fields: [{}, { element: { fields: [{ scalar: "timestamptz" }] } }] }, { scalar: "text" }]
    })
  })

  it("says nothing where an array holds no record", () => {
    expect(partOf(2287, bytes(records(null)))).toBe(2287)
    expect(partOf(2287, bytes([int(0), int(0), int(2249)].join("")))).toBe(2287)
  })
})

describe("the statement that asks for it", () => {
  it.each([
    ["select row(1) as a, 2", "select row(1) as a, 2"],
    [" ;\n select row(1);", "select row(1)"],
    ["select row(1) ; -- done\n ; ;\n /* and this */ ; ", "select row(1) "],
    ["select row('a;'); -- it's", "select row('a;'); -- it's"],
    ["select row(1) -- ; done", "select row(1) -- ; done"],
    ["select row('; --')", "select row('; --')"]
  ])("%j", (sql, inside) => {
    expect(sample(sql, 2, 1, 2249)).toBe(
      `select pg_catalog.record_send(q.c1) from (\n${inside}\n) as q(c0, c1) where q.c1 is distinct from null limit 1`
    )
  })
})

it("reads the largest texts in time", () => {
  const long = 1_000_000
  expect(holdsMoment("1".repeat(long))).toBe(false)
  for (const tail of [";".repeat(long), "-- ;".repeat(long), "/* ".repeat(long), "; --".repeat(long)]) {
    expect(sample(`select row(1), '${tail}'`, 1, 0, 2249)).toContain("record_send")
  }
})

it.each([
  ['(1,"2024-07-01 17:30:00+05:30")', true],
  ['("(""2024-07-01 08:00:00.5-04"")")', true],
  ['("12024-07-01 08:00:00-00:44:30")', true],
  ['(1,"2024-07-01 12:00:00+00")', false],
  ['("2024-07-01 12:00:00+00 BC")', false],
  ['(2024-07-01,"2024-07-01 12:00:00")', false]
])("%s may hold a moment of another zone: %s", (text, wanted) => {
  expect(holdsMoment(text)).toBe(wanted)
})
