import { expect, it } from "vitest"
import { planLines } from "../../../src/Adapter/Postgres/Plan.js"

const figures = "  (cost=0.00..1.00 rows=2 width=3)"
const lines = (plan: Record<string, unknown>) => {
  const costs = { "Startup Cost": 0, "Total Cost": 1, "Plan Rows": 2, "Plan Width": 3 }
  return planLines(JSON.stringify([{ Plan: { ...costs, ...plan } }]), 10_000).map((line) =>
    line.replace(figures, "")
  )
}

it.each([
  [{ "Node Type": "Hash Join", "Join Type": "Inner" }, "Hash Join"],
  [{ "Node Type": "Hash Join", "Join Type": "Right Anti" }, "Hash Right Anti Join"],
  [{ "Node Type": "Merge Join", "Join Type": "Full" }, "Merge Full Join"],
  [{ "Node Type": "Nested Loop", "Join Type": "Left" }, "Nested Loop Left Join"],
  [{ "Node Type": "Nested Loop", "Join Type": "Inner" }, "Nested Loop"],
  [{ "Node Type": "SetOp", Strategy: "Hashed", Command: "Except" }, "HashSetOp Except"],
  [{ "Node Type": "Aggregate", Strategy: "Mixed" }, "MixedAggregate"],
  [{ "Node Type": "Aggregate", Strategy: "Plain", "Partial Mode": "Partial" }, "Partial Aggregate"],
  [
    {
      "Node Type": "Index Only Scan",
      "Scan Direction": "Backward",
      "Index Name": "t_pkey",
      "Relation Name": "t",
      Alias: "x"
    },
    "Index Only Scan Backward using t_pkey on t x"
  ],
  [
    { "Node Type": "Seq Scan", "Parallel Aware": true, "Relation Name": "t", Alias: "t" },
    "Parallel Seq Scan on t"
  ]
])("%j", (node, title) => {
  expect(lines(node)).toEqual([title])
})

it("says what was left out, and nothing of what was not", () => {
  expect(lines({ "Node Type": "Append", "Subplans Removed": 0, Disabled: false })).toEqual(["Append"])
  expect(lines({ "Node Type": "Append", "Subplans Removed": 2, Disabled: true })).toEqual([
    "Append",
    "  Subplans Removed: 2",
    "  Disabled: true"
  ])
})
