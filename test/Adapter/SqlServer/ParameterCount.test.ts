import { describe, expect, it } from "@effect/vitest"
import { parameterFault } from "../../../src/Adapter/SqlServer/ParameterCount.js"

describe("parameters and values", () => {
  it.each([
    ["select 1", 0],
    ["select @p1, @P2", 2],
    ["select @@rowcount, '@p9', [@p8] -- @p7", 0],
    ["select x.query('sql:variable(\"@p1\")') from t", 1]
  ])("%s takes %i", (sql, count) => {
    expect(parameterFault(sql, count)).toBeUndefined()
  })

  it.each([
    ["select @p2", 1, "asks for @p2, but 1 value was given"],
    ["select @p1", 2, "has no @p2, but 2 values were given"],
    ["select 'sql:variable(\"@p12\")'", 1, "has no @p1, but 1 value was given"],
    ["select @name", 0, "@name is not declared"],
    ["select 1", 2101, "at most 2100 values, but 2101 values were given"]
  ])("%s does not take %i", (sql, count, message) => {
    expect(parameterFault(sql, count)).toMatchObject({
      _tag: "QueryFailed",
      reason: "parameters",
      message: expect.stringContaining(message)
    })
  })

  it("reads a statement once, however many values there are", () => {
    const names = Array.from({ length: 2100 }, (_, index) => `@p${index + 1}`)
    const sql = `select '${names.join(" ")}', ${"a+".repeat(40_000)} 1`
    for (let time = 0; time < 20; time++) expect(parameterFault(sql, 2100)).toBeUndefined()
  })
})
