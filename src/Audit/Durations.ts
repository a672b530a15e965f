/** Durations in bounded memory, whatever their number and size. */
import { LogCollapsingLowestDenseDDSketch as Sketch } from "@datadog/sketches-js"
import type { Latency } from "./Report.js"

/** Half of what `Latency` promises: rounding takes its part. */
const relativeAccuracy = 0.005
/** From 0.1 ms to an hour in steps of that accuracy take 1,750 bins; shorter ones share a bin beyond them. */
const binLimit = 2048

export interface Durations {
  readonly add: (ms: number) => void
  readonly merge: (other: Durations) => void
  readonly latency: () => Latency | null
  /** @internal */
  readonly sketch: Sketch
}

const round = (ms: number) => Math.round(ms * 10) / 10

export const make = (): Durations => {
  const sketch = new Sketch({ relativeAccuracy, binLimit })
  /** The nearest rank: of two calls, p95 is the slower one. The sketch's own rank would be the faster one's. */
  const at = (quantile: number) => {
    const rank = Math.ceil(quantile * sketch.count) - 0.5
    if (rank >= sketch.count - 1) return round(sketch.max)
    const value = sketch.getValueAtQuantile(rank / (sketch.count - 1))
    return round(Math.min(sketch.max, Math.max(sketch.min, value)))
  }
  return {
    sketch,
    add: (ms) => sketch.accept(ms),
    merge: (other) => sketch.merge(other.sketch),
    latency: () =>
      sketch.count === 0 ? null : { p50: at(0.5), p95: at(0.95), p99: at(0.99), max: round(sketch.max) }
  }
}
