import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import { closest } from "../src/Closest.js"

describe("the closest names", () => {
  const known = ["sql", "source", "params", "maxRows", "timeoutMs", "format"]
  it.each([
    ["maxrow", ["maxRows"]],
    ["maxrows", ["maxRows"]],
    ["rows", ["maxRows"]],
    ["parms", ["params"]],
    ["timeout", ["timeoutMs"]],
    ["sqll", ["sql"]],
    ["zzzzzz", []],
    ["", []]
  ])("to %j are %j", (name, expected) => expect(closest(name, known, 1)).toEqual(expected))

  it("are found among endless ones", () => {
    const endless = Array.from({ length: 1000 }, (_, at) => `${at}${"x".repeat(30_000)}`)
    expect(closest("o".repeat(200), [...endless, "o".repeat(199)])).toEqual(["o".repeat(199)])
  })

  it("are of the given ones, as many as wanted at most, the name itself first", () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.uniqueArray(fc.string(), { maxLength: 8 }),
        fc.nat({ max: 4 }),
        (name, names, limit) => {
          const found = closest(name, names, limit)
          expect(found.length).toBeLessThanOrEqual(limit)
          for (const one of found) expect(names).toContain(one)
          if (names.includes(name) && name !== "" && limit > 0 && found.length > 0)
            expect(found[0]?.toLowerCase()).toBe(name.toLowerCase())
        }
      )
    )
  })
})
