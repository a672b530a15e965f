/** Entries of a log → a report. What it keeps is bounded, however long the log is and whatever stands in it. */
import type { CallEntry, EventEntry, LogEntry } from "../CallLog.js"
import * as Durations from "./Durations.js"
import * as Intervals from "./Intervals.js"
import type { Event, Failures, Group, Report, Undecodable } from "./Report.js"
import * as SlowestStatements from "./SlowestStatements.js"

/** Names come from the log: past this many different ones the rest are told together. */
const maxNames = 2000
const maxUndecodable = 20
const maxSlowest = 20
const others = "(others)"

export interface SummaryOptions {
  /** Entries before this moment do not count. */
  readonly since: number | undefined
}

export interface Summary {
  readonly line: (bytes: number) => void
  readonly entry: (entry: LogEntry, time: number) => void
  readonly undecodable: (line: Undecodable) => void
  readonly report: (files: ReadonlyArray<string>) => Report
}

interface Tally {
  readonly durations: Durations.Durations
  calls: number
  retried: number
}

const tally = (): Tally => ({ durations: Durations.make(), calls: 0, retried: 0 })

const count = (into: Tally, { attempts, durationMs }: CallEntry) => {
  into.calls++
  if (attempts > 1) into.retried++
  into.durations.add(durationMs)
}

const figures = ({ calls, durations, retried }: Tally) => ({
  calls,
  retried,
  latency: durations.latency()
})

/** A map that stops growing: what comes beyond the bound shares one entry. */
const bounded = <A>() => {
  const items = new Map<string, A>()
  return {
    get: (key: string, make: (other: boolean) => A): A => {
      const found = items.get(key)
      if (found !== undefined) return found
      const other = items.size >= maxNames
      const existing = other ? items.get(others) : undefined
      if (existing !== undefined) return existing
      const made = make(other)
      items.set(other ? others : key, made)
      return made
    },
    values: () => [...items.values()]
  }
}

const iso = (time: number | undefined) => (time === undefined ? null : new Date(time).toISOString())

const sourceOf = (entry: EventEntry): string | null => {
  const source = entry["source"]
  return typeof source === "string" ? name(source) : null
}

/** A name is short; where it is not, its beginning will do. */
const name = (text: string) => text.slice(0, 200)

type Mutable<A> = { -readonly [K in keyof A]: A[K] }

export const make = ({ since }: SummaryOptions): Summary => {
  const all = tally()
  const outcomes = { succeeded: 0, failed: 0, cancelled: 0 }
  const groups = bounded<{
    readonly names: Omit<Group, "calls" | "retried" | "latency">
    readonly tally: Tally
  }>()
  const failures = bounded<{
    readonly sources: Set<string>
    readonly facts: Mutable<Omit<Failures, "sources">>
  }>()
  const events = bounded<Mutable<Event>>()
  const intervals = Intervals.make()
  const slowest = SlowestStatements.make()
  const firstUndecodable: Array<Undecodable> = []
  let [bytes, lines, undecodableLines, droppedLines] = [0, 0, 0, 0]
  let first: number | undefined
  let last: number | undefined

  const call = (entry: CallEntry, time: number) => {
    const { outcome } = entry
    const tool = name(entry.tool)
    const source = entry.source === undefined ? null : name(entry.source)
    const failed = outcome === "failed"
    const category = failed ? name(entry.category ?? "unknown") : null
    outcomes[outcome]++
    count(all, entry)
    count(
      groups.get(JSON.stringify([tool, source, outcome, category]), (other) => ({
        names: other
          ? { tool: others, source: null, outcome, category: null }
          : { tool, source, outcome, category },
        tally: tally()
      })).tally,
      entry
    )
    intervals.add(time, entry.durationMs, { failed, retried: entry.attempts > 1 })
    slowest.add(entry)
    if (!failed) return
    const reason = name(entry.reason ?? "unknown")
    const { facts, sources } = failures.get(`${category}/${reason}`, (other) => ({
      sources: new Set(),
      facts: {
        category: other || category === null ? others : category,
        reason: other ? others : reason,
        calls: 0,
        lastTime: entry.time,
        lastCorrelationId: entry.correlationId
      }
    }))
    facts.calls++
    if (source !== null && sources.size < 100) sources.add(source)
    if (time >= Date.parse(facts.lastTime)) {
      facts.lastTime = entry.time
      facts.lastCorrelationId = entry.correlationId
    }
  }

  const event = (entry: EventEntry) => {
    const source = sourceOf(entry)
    const called = name(entry.event)
    const known = events.get(JSON.stringify([called, source]), (other) => ({
      event: other ? others : called,
      source: other ? null : source,
      count: 0,
      lastTime: entry.time
    }))
    known.count++
    if (Date.parse(entry.time) >= Date.parse(known.lastTime)) known.lastTime = entry.time
  }

  return {
    line: (size) => {
      lines++
      bytes += size
    },
    undecodable: (line) => {
      undecodableLines++
      if (firstUndecodable.length < maxUndecodable) firstUndecodable.push(line)
    },
    entry: (entry, time) => {
      if (since !== undefined && time < since) return
      first = first === undefined ? time : Math.min(first, time)
      last = last === undefined ? time : Math.max(last, time)
      droppedLines += entry.droppedLines ?? 0
      if (isCall(entry)) call(entry, time)
      else event(entry)
    },
    report: (files) => ({
      files,
      bytes,
      lines,
      since: iso(since),
      first: iso(first),
      last: iso(last),
      ...outcomes,
      ...figures(all),
      groups: groups
        .values()
        .map(({ names, tally }) => ({ ...names, ...figures(tally) }))
        .sort((a, b) => b.calls - a.calls),
      failures: failures
        .values()
        .map(({ facts, sources }) => ({ ...facts, sources: [...sources].sort() }))
        .sort((a, b) => b.calls - a.calls),
      slowest: slowest.list(maxSlowest),
      intervals: intervals.list(),
      events: events.values().sort((a, b) => b.count - a.count),
      droppedLines,
      undecodable: { lines: undecodableLines, first: firstUndecodable }
    })
  }
}

const isCall = (entry: LogEntry): entry is CallEntry => entry.event === "tool_call"
