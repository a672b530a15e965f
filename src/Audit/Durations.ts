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
  const at = (quantile: number) =>
    round(Math.min(sketch.max, Math.max(sketch.min, sketch.getValueAtQuantile(quantile))))
  return {
    sketch,
    add: (ms) => sketch.accept(ms),
    merge: (other) => sketch.merge(other.sketch),
    latency: () =>
      sketch.count === 0 ? null : { p50: at(0.5), p95: at(0.95), p99: at(0.99), max: round(sketch.max) }
  }
}
