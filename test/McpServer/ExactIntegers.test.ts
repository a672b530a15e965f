import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import { restore } from "../../src/McpServer/ExactIntegers.js"

const line = (params: string, sql = "select ?") =>
  `{"id":1,"params":{"name":"query","arguments":{"sql":${JSON.stringify(sql)},"params":${params}}}}`

const paramsOf = (text: string) => {
  const restored = restore(JSON.parse(text), text)
  return (restored as { params: { arguments: { params: unknown } } }).params.arguments.params
}

describe("restore", () => {
  it.each<[string, unknown]>([
    ["[9007199254740993]", [9007199254740993n]],
    ["[ -9223372036854775808 , 1 , 9007199254740991]", [-9223372036854775808n, 1, 9007199254740991]],
    ["[123456789012345678901234567890]", [123456789012345678901234567890n]],
    [
      '[9007199254740993, "9007199254740993", "\\"9007199254740993", null, true, 1.5, 1e22, 1E-7]',
      [9007199254740993n, "9007199254740993", '"9007199254740993', null, true, 1.5, 1e22, 1e-7]
    ],
    ["[9007199254740994.0]", [9007199254740994]],
    [`[9007199254740993, 1${"0".repeat(1_000_000)}]`, [9007199254740993n, Number.POSITIVE_INFINITY]],
    ["[1e400]", [Number.POSITIVE_INFINITY]],
    ["[[9007199254740993]]", [[9007199254740992]]],
    ["7", 7]
  ])("%.100s", (params, expected) => expect(paramsOf(line(params))).toEqual(expected))

  it("leaves everything else as it was parsed", () => {
    const text = line("[9007199254740993]", '-- 9007199254740993 \\ " \u2028 {"params":[1]}')
    const parsed = JSON.parse(text)
    expect(restore(parsed, text)).toEqual({
      ...parsed,
      params: { ...parsed.params, arguments: { ...parsed.params.arguments, params: [9007199254740993n] } }
    })
    const plain = JSON.parse(line("[1]"))
    expect(restore(plain, line("[1]"))).toBe(plain)
    for (const odd of ["1", "null", "[]", '{"params":[9007199254740993]}', '{"params":{"arguments":[]}}'])
      expect(restore(JSON.parse(odd), odd)).toEqual(JSON.parse(odd))
  })

  it("keeps the digits of any integers between any texts", () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.bigInt(), fc.string())), (values) => {
        const json = values.map((value) =>
          typeof value === "bigint" ? String(value) : JSON.stringify(value)
        )
        const found = paramsOf(line(`[${json.join()}]`))
        expect(Array.isArray(found) ? found.map(String) : found).toEqual(values.map(String))
      })
    )
  })
})
