/** Latency over time in bounded memory: intervals grow wider as the log grows longer. */
import * as Durations from "./Durations.js"
import type { Interval } from "./Report.js"

/** Each is a multiple of the one before, so that narrow intervals fall into wide ones whole. */
const widths = [
  1, 5, 15, 60, 300, 900, 3600, 21_600, 86_400, 604_800, 2_419_200, 31_449_600, 314_496_000
].map((seconds) => seconds * 1000)
const most = 240

interface Bucket {
  readonly durations: Durations.Durations
  calls: number
  failed: number
  retried: number
}

/** Beyond it there are no dates; a log may name any, and its intervals begin and end beside them. */
const furthest = 8_640_000_000_000_000

/** The nearest moment that has a date. */
export const dated = (time: number): number => Math.min(furthest, Math.max(-furthest, time))

export interface Intervals {
  readonly add: (
    time: number,
    durationMs: number,
    call: { readonly failed: boolean; readonly retried: boolean }
  ) => void
  readonly list: () => ReadonlyArray<Interval>
}

const bucket = (): Bucket => ({ durations: Durations.make(), calls: 0, failed: 0, retried: 0 })

export const make = (): Intervals => {
  let buckets = new Map<number, Bucket>()
  let step = 0
  const width = () => widths[step] ?? Number.MAX_SAFE_INTEGER

  const at = (index: number) => {
    const found = buckets.get(index)
    if (found !== undefined) return found
    const made = bucket()
    buckets.set(index, made)
    return made
  }

  const widen = () => {
    const narrow = buckets
    const before = width()
    buckets = new Map()
    step++
    for (const [index, part] of narrow) {
      const whole = at(Math.floor((index * before) / width()))
      whole.durations.merge(part.durations)
      whole.calls += part.calls
      whole.failed += part.failed
      whole.retried += part.retried
    }
  }

  return {
    add: (time, durationMs, { failed, retried }) => {
      const into = at(Math.floor(time / width()))
      into.durations.add(durationMs)
      into.calls++
      if (failed) into.failed++
      if (retried) into.retried++
      while (buckets.size > most && step < widths.length) widen()
    },
    list: () =>
      [...buckets]
        .sort(([a], [b]) => a - b)
        .map(([index, { calls, durations, failed, retried }]) => ({
          from: new Date(dated(index * width())).toISOString(),
          widthMs: width(),
          calls,
          failed,
          retried,
          latency: durations.latency()
        }))
  }
}
