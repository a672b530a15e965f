import { describe, expect, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import * as fc from "fast-check"
import { describeValue, formatPath, schemaIssues } from "../src/SchemaIssue.js"

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

const schema = Schema.Struct({
  name: Schema.String,
  size: optional(
    Schema.Number.pipe(Schema.int(), Schema.between(1, 9)).annotations({ description: "1 to 9" })
  ),
  colour: optional(Schema.Literal("red", "green")),
  tags: optional(Schema.Array(Schema.Union(Schema.String, Schema.Null))),
  inner: optional(Schema.Struct({ deep: Schema.Boolean })),
  shape: optional(
    Schema.Union(
      Schema.Struct({ kind: Schema.Literal("circle"), radius: Schema.Number }),
      Schema.Struct({ kind: Schema.Literal("square"), side: Schema.Number })
    )
  )
})

const issues = (value: unknown) =>
  Either.match(Schema.decodeUnknownEither(schema, { errors: "all", onExcessProperty: "error" })(value), {
    onLeft: ({ issue }) =>
      schemaIssues(issue).map(({ expected, kind, path, received }) => [
        formatPath(path),
        kind,
        expected,
        received
      ]),
    onRight: () => []
  })

describe("what a Schema found wrong", () => {
  it.each<readonly [string, unknown, ReadonlyArray<ReadonlyArray<unknown>>]>([
    ["nothing", { name: "a" }, []],
    ["no object", 5, [["", "type", expect.any(String), "the number 5"]]],
    ["a missing key", {}, [["name", "missing", "a string", "nothing"]]],
    ["a wrong type", { name: 5 }, [["name", "type", "a string", "the number 5"]]],
    ["a value out of bounds", { name: "", size: 10 }, [["size", "refinement", "1 to 9", "the number 10"]]],
    ["a fraction", { name: "", size: 1.5 }, [["size", "refinement", expect.any(String), "the number 1.5"]]],
    ["text for a number", { name: "", size: "5" }, [["size", "type", expect.any(String), 'the string "5"']]],
    [
      "a literal that is none",
      { name: "", colour: "blue" },
      [["colour", "refinement", '"red" or "green"', 'the string "blue"']]
    ],
    [
      "a literal of another type",
      { name: "", colour: 5 },
      [["colour", "type", '"red" or "green"', "the number 5"]]
    ],
    [
      "an element",
      { name: "", tags: ["a", 5, null, {}] },
      [
        ["tags[1]", "type", expect.any(String), "the number 5"],
        ["tags[3]", "type", expect.any(String), "an object"]
      ]
    ],
    [
      "an inner key",
      { name: "", inner: { deep: 1, more: 2 } },
      [
        ["inner.deep", "type", "a boolean", "the number 1"],
        ["inner.more", "unexpected", "deep", "the number 2"]
      ]
    ],
    [
      "the member that was meant",
      { name: "", shape: { kind: "square", side: "x" } },
      [["shape.side", "type", "a number", 'the string "x"']]
    ]
  ])("%s", (_, value, expected) => {
    const found = issues(value)
    expect(found).toHaveLength(expected.length)
    expect(found).toEqual(expect.arrayContaining([...expected]))
  })

  it("never repeats more than 60 characters of a value", () => {
    fc.assert(
      fc.property(fc.anything(), (value) => {
        expect(describeValue(value).length).toBeLessThan(200)
      })
    )
    expect(describeValue("x".repeat(61))).toBe("a string of 61 characters")
    expect(describeValue([1, 2])).toBe("an array of 2")
    expect(describeValue(null)).toBe("null")
    expect(describeValue(undefined)).toBe("nothing")
  })

  it("finds something wrong with whatever does not decode", () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.anything(), fc.dictionary(fc.constantFrom("name", "size", "tags", "x"), fc.anything())),
        (value) => {
          const ok = Either.isRight(Schema.decodeUnknownEither(schema, { onExcessProperty: "error" })(value))
          expect(issues(value).length > 0).toBe(!ok)
        }
      )
    )
  })
})
