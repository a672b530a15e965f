/** The statements with the slowest calls, in bounded memory: their maxima are exact however many statements there are. */
import { createHash } from "node:crypto"
import type { CallEntry } from "../CallLog.js"
import type { Statement } from "./Report.js"

/** Kept after a cut; up to twice as many between cuts. */
const kept = 2000
const maxTextLength = 2000

interface Entry {
  readonly tool: string
  readonly source: string | null
  readonly statement: string
  readonly callsAreExact: boolean
  calls: number
  failed: number
  totalMs: number
  maxMs: number
  slowestTime: string
  slowestCorrelationId: string
}

/** The SQL of a call, or what stands for it in this log. */
const statementOf = (args: unknown): string | undefined => {
  if (typeof args === "string") return args
  const sql = typeof args === "object" && args !== null ? Reflect.get(args, "sql") : undefined
  return typeof sql === "string" ? sql : undefined
}

const keyOf = ({ source, tool }: CallEntry, statement: string) =>
  `${tool}\n${source ?? ""}\n${statement.length <= 100 ? statement : createHash("sha256").update(statement).digest("base64")}`

const cut = (text: string) =>
  text.length <= maxTextLength ? text : `${text.slice(0, maxTextLength).replace(/[\ud800-\udbff]$/, "")}…`

export interface SlowestStatements {
  readonly add: (call: CallEntry) => void
  readonly list: (most: number) => ReadonlyArray<Statement>
}

export const make = (): SlowestStatements => {
  let entries = new Map<string, Entry>()
  /** No statement that was dropped had a slower call. */
  let floor = -1

  const bySlowest = () => [...entries].sort(([, a], [, b]) => b.maxMs - a.maxMs)

  const admit = (key: string, call: CallEntry, statement: string) => {
    if (call.durationMs <= floor) return undefined
    const entry: Entry = {
      tool: call.tool,
      source: call.source ?? null,
      statement: cut(statement),
      callsAreExact: floor < 0,
      calls: 0,
      failed: 0,
      totalMs: 0,
      maxMs: call.durationMs,
      slowestTime: call.time,
      slowestCorrelationId: call.correlationId
    }
    entries.set(key, entry)
    if (entries.size > 2 * kept) {
      const sorted = bySlowest().slice(0, kept)
      floor = Math.max(floor, sorted.at(-1)?.[1].maxMs ?? floor)
      entries = new Map(sorted)
    }
    return entry
  }

  return {
    add: (call) => {
      const statement = statementOf(call.arguments)
      if (statement === undefined) return
      const key = keyOf(call, statement)
      const entry = entries.get(key) ?? admit(key, call, statement)
      if (entry === undefined) return
      entry.calls++
      entry.totalMs += call.durationMs
      if (call.outcome === "failed") entry.failed++
      if (call.durationMs > entry.maxMs) {
        entry.maxMs = call.durationMs
        entry.slowestTime = call.time
        entry.slowestCorrelationId = call.correlationId
      }
    },
    list: (most) =>
      bySlowest()
        .slice(0, most)
        .map(([, { totalMs, ...entry }]) => ({
          ...entry,
          meanMs: Math.round((totalMs / entry.calls) * 10) / 10
        }))
  }
}
