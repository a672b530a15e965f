import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import { repeatedKeys } from "../../src/Settings/RepeatedKeys.js"

describe("repeatedKeys", () => {
  it.each<[string, ReadonlyArray<ReadonlyArray<PropertyKey>>]>([
    ['{"a":1,"a":2}', [["a"]]],
    ['{"sources":{"a":{"b":1},"c":{},"a":{"b":1}}}', [["sources", "a"]]],
    ['{"a":[{"b":1},{"b":1,"c":[1,2],"b":2}]}', [["a", 1, "b"]]],
    ['{"a":1,"\\u0061":2,"a":3}', [["a"], ["a"]]],
    ['{"a":"a","b":"a","c":{"a":{"a":[]}}}', []],
    ['{"a":"}{,:\\"a\\":","b":["a","a",{"a":"b"}],"\\\\":1,"\\"":2}', []],
    ["[]", []],
    ['"a"', []],
    ["{}", []]
  ])("%s", (text, expected) => expect(repeatedKeys(text)).toEqual(expected))

  it("finds none in what was written from a value", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(repeatedKeys(JSON.stringify(JSON.parse(text), null, 1))).toEqual([])
      })
    )
  })
})
