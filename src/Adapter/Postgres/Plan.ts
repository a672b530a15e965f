/** The engine's plan, from its JSON form, as lines that read like its own text form. */
import { isJsonObject, type JsonObject } from "../../JsonObject.js"

type Node = JsonObject

const textOf = (node: Node, key: string): string | null => {
  const value = node[key]
  if (typeof value === "string") return value
  if (typeof value === "number") return String(value)
  if (Array.isArray(value)) return value.map(String).join(", ")
  return null
}

/** What is worth a line of its own below a node. */
const conditions = [
  "Index Cond",
  "Recheck Cond",
  "Hash Cond",
  "Merge Cond",
  "Join Filter",
  "Filter",
  "One-Time Filter",
  "TID Cond",
  "Order By",
  "Sort Key",
  "Presorted Key",
  "Group Key",
  "Cache Key",
  "Run Condition",
  "Function Call",
  "Remote SQL",
  "Workers Planned",
  "Sampling Method",
  "Subplans Removed"
]

const aggregates: Record<string, string> = {
  Hashed: "HashAggregate",
  Sorted: "GroupAggregate",
  Mixed: "MixedAggregate"
}

/** The node's name, in which the text form says at once how it works. */
const kind = (node: Node): string => {
  const type = textOf(node, "Node Type") ?? "?"
  const strategy = textOf(node, "Strategy") ?? ""
  const join = textOf(node, "Join Type")
  if (type === "Aggregate") return aggregates[strategy] ?? type
  if (type === "SetOp") return `${strategy === "Hashed" ? "Hash" : ""}SetOp ${textOf(node, "Command") ?? ""}`
  if (join !== null && join !== "Inner") return `${type.replace(/ Join$/, "")} ${join} Join`
  return textOf(node, "Scan Direction") === "Backward" ? `${type} Backward` : type
}

const title = (node: Node): string => {
  const get = (key: string) => textOf(node, key)
  const relation =
    get("Relation Name") ?? get("Function Name") ?? get("CTE Name") ?? get("Table Function Name")
  const alias = get("Alias")
  const index = get("Index Name")
  return [
    get("Subplan Name") === null ? "" : `${get("Subplan Name")}: `,
    node["Parallel Aware"] === true ? "Parallel " : "",
    get("Partial Mode") === "Partial" || get("Partial Mode") === "Finalize" ? `${get("Partial Mode")} ` : "",
    kind(node),
    index === null ? "" : ` using ${index}`,
    relation === null ? "" : ` on ${relation}`,
    alias === null || alias === relation ? "" : ` ${alias}`
  ].join("")
}

const figures = (node: Node): string => {
  const cost = (key: string) => (typeof node[key] === "number" ? node[key].toFixed(2) : "?")
  return `(cost=${cost("Startup Cost")}..${cost("Total Cost")} rows=${node["Plan Rows"] ?? "?"} width=${node["Plan Width"] ?? "?"})`
}

/** Lines of a plan given as `EXPLAIN (FORMAT JSON)` prints it, as many as fit into `maxBytes`. */
export const planLines = (json: string, maxBytes: number): ReadonlyArray<string> => {
  const root: unknown = JSON.parse(json)
  const first: unknown = Array.isArray(root) ? root[0] : undefined
  if (!isJsonObject(first) || !isJsonObject(first["Plan"])) return []
  const lines: Array<string> = []
  let bytes = 0
  let left = 0
  const add = (line: string) => {
    bytes += Buffer.byteLength(line) + 3
    if (bytes <= maxBytes) lines.push(line)
    else left++
  }
  const open: Array<{ readonly node: Node; readonly depth: number }> = [{ node: first["Plan"], depth: 0 }]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { node, depth } = next
    const indent = "  ".repeat(depth)
    add(`${indent}${depth === 0 ? "" : "-> "}${title(node)}  ${figures(node)}`)
    for (const key of conditions) {
      const value = textOf(node, key)
      if (value !== null && value !== "0") add(`${indent}${depth === 0 ? "  " : "     "}${key}: ${value}`)
    }
    if (node["Disabled"] === true) add(`${indent}${depth === 0 ? "  " : "     "}Disabled: true`)
    const inner: ReadonlyArray<unknown> = Array.isArray(node["Plans"]) ? node["Plans"] : []
    for (const child of [...inner].reverse())
      if (isJsonObject(child)) open.push({ node: child, depth: depth + 1 })
  }
  return left === 0 ? lines : [...lines, `… and ${left} more lines`]
}
