/** Latency and traffic over time as SVG. Colours are the page's, so that they follow its light or dark scheme. */
import * as Format from "./Format.js"
import { dated } from "./Intervals.js"
import type { Interval } from "./Report.js"

const width = 1000
const left = 64
const right = 12

const point = (value: number) => Math.round(value * 10) / 10

const seconds = [1, 5, 10, 30, 60, 300, 600, 1800, 3600, 7200, 10_800, 21_600, 43_200]
const days = [1, 2, 7, 14, 28, 91, 182, 364, 1820, 3640, 36_400].map((many) => many * 86_400)
const tickSteps = [...seconds, ...days].map((step) => step * 1000)

interface TimeScale {
  readonly x: (time: number) => number
  readonly ticks: ReadonlyArray<number>
  readonly label: (time: number) => string
}

const timeScale = (from: number, to: number): TimeScale => {
  const span = Math.max(1, to - from)
  const step = tickSteps.find((candidate) => span / candidate <= 8) ?? span
  const first = Math.ceil(from / step) * step
  const ticks: Array<number> = []
  for (let tick = first; tick <= to && ticks.length < 10; tick += step) ticks.push(tick)
  const label = (time: number) => {
    const iso = new Date(time).toISOString()
    if (step >= 86_400_000) return iso.slice(0, 10)
    const clock = iso.slice(11, step < 60_000 ? 19 : 16)
    return span > 86_400_000 ? `${iso.slice(5, 10)} ${clock}` : clock
  }
  return { x: (time) => left + ((time - from) / span) * (width - left - right), ticks, label }
}

interface ValueScale {
  readonly y: (value: number) => number
  readonly ticks: ReadonlyArray<number>
}

/** Latencies differ by orders of magnitude: decades, with steps between them where there are few. */
const logScale = (least: number, most: number, top: number, bottom: number): ValueScale => {
  const low = Math.floor(Math.log10(Math.max(0.1, least)))
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(0.1, most))))
  const steps = high - low <= 2 ? [1, 2, 5] : [1]
  const ticks: Array<number> = []
  for (let decade = low; decade <= high; decade++)
    for (const step of steps) if (decade < high || step === 1) ticks.push(step * 10 ** decade)
  return {
    y: (value) => bottom - ((Math.log10(Math.max(10 ** low, value)) - low) / (high - low)) * (bottom - top),
    ticks
  }
}

const linearScale = (most: number, top: number, bottom: number): ValueScale => {
  const magnitude = 10 ** Math.floor(Math.log10(Math.max(1, most)))
  const step = [1, 2, 5, 10].map((many) => (many * magnitude) / 2).find((size) => most / size <= 3) ?? most
  const whole = Math.max(1, Math.ceil(step))
  const high = Math.max(1, Math.ceil(most / whole)) * whole
  return {
    y: (value) => bottom - (value / high) * (bottom - top),
    ticks: Array.from({ length: Math.floor(high / whole) + 1 }, (_, index) => index * whole)
  }
}

const startOf = ({ from }: Interval) => Date.parse(from)
const middleOf = (interval: Interval) => startOf(interval) + interval.widthMs / 2

/** Neighbours belong to one line; a pause in the traffic cuts it. */
const runs = (intervals: ReadonlyArray<Interval>): ReadonlyArray<ReadonlyArray<Interval>> => {
  const result: Array<Array<Interval>> = []
  let previous: Interval | undefined
  for (const interval of intervals) {
    const joined = previous !== undefined && startOf(interval) - startOf(previous) <= 3 * interval.widthMs
    if (joined) result.at(-1)?.push(interval)
    else result.push([interval])
    previous = interval
  }
  return result
}

const quantiles = ["p50", "p95", "p99"] as const

const gridLines = ({ ticks, y }: ValueScale, label: (value: number) => string) =>
  ticks
    .map(
      (tick) =>
        `<line class="grid" x1="${left}" x2="${width - right}" y1="${point(y(tick))}" y2="${point(y(tick))}"/>` +
        `<text class="axis" x="${left - 8}" y="${point(y(tick) + 4)}" text-anchor="end">${label(tick)}</text>`
    )
    .join("")

const timeAxis = ({ label, ticks, x }: TimeScale, y: number) =>
  ticks
    .map(
      (tick) =>
        `<line class="grid" x1="${point(x(tick))}" x2="${point(x(tick))}" y1="${y - 18}" y2="${y - 13}"/>` +
        `<text class="axis" x="${point(Math.min(width - 40, Math.max(left + 14, x(tick))))}" y="${y}" text-anchor="middle">${label(tick)}</text>`
    )
    .join("")

const tooltip = (interval: Interval) => {
  const { calls, failed, from, latency, retried } = interval
  const figures = latency === null ? [] : quantiles.map((name) => `${name} ${Format.duration(latency[name])}`)
  return [
    Format.moment(from),
    `${Format.count(calls)} calls, ${Format.count(failed)} failed, ${Format.count(retried)} retried`,
    ...figures
  ].join("\n")
}

/** p50, p95 and p99 of each interval over bars of its calls, failed ones apart. */
export const overTime = (intervals: ReadonlyArray<Interval>): string => {
  const [firstInterval] = intervals
  const lastInterval = intervals.at(-1)
  if (firstInterval === undefined || lastInterval === undefined) return ""
  const time = timeScale(startOf(firstInterval), dated(startOf(lastInterval) + lastInterval.widthMs))
  const known = intervals.flatMap(({ latency }) => (latency === null ? [] : [latency]))
  const latency = logScale(
    Math.min(...known.map(({ p50 }) => p50)),
    Math.max(...known.map(({ p99 }) => p99)),
    12,
    236
  )
  const traffic = linearScale(Math.max(...intervals.map(({ calls }) => calls)), 262, 330)

  const at = (interval: Interval, name: (typeof quantiles)[number]) =>
    `${point(time.x(middleOf(interval)))} ${point(latency.y(interval.latency?.[name] ?? 0))}`
  const areas = runs(intervals)
    .filter((run) => run.length > 1)
    .map(
      (run) =>
        `<path class="area" d="M${run.map((interval) => at(interval, "p99")).join("L")}L${[...run]
          .reverse()
          .map((interval) => at(interval, "p50"))
          .join("L")}Z"/>`
    )
  const lines = quantiles.map((name) =>
    runs(intervals)
      .map((run) => {
        const [only] = run
        if (run.length === 1 && only !== undefined) {
          const [x, y] = at(only, name).split(" ")
          return `<circle class="${name} dot" cx="${x}" cy="${y}" r="3"/>`
        }
        return `<path class="${name} line" d="M${run.map((interval) => at(interval, name)).join("L")}"/>`
      })
      .join("")
  )
  const bars = intervals.map((interval) => {
    const x = time.x(startOf(interval))
    const full = time.x(startOf(interval) + interval.widthMs) - x
    const size = Math.max(1, full * 0.84)
    const bar = (name: string, from: number, to: number) =>
      `<rect class="${name}" x="${point(x + (full - size) / 2)}" width="${point(size)}" y="${point(traffic.y(to))}" height="${point(traffic.y(from) - traffic.y(to))}"/>`
    return (
      bar("calls", interval.failed, interval.calls) +
      (interval.failed > 0 ? bar("failed", 0, interval.failed) : "")
    )
  })
  const hover = intervals.map((interval) => {
    const x = time.x(startOf(interval))
    return `<rect class="hover" x="${point(x)}" width="${point(Math.max(1, time.x(startOf(interval) + interval.widthMs) - x))}" y="12" height="318"><title>${tooltip(interval)}</title></rect>`
  })
  return [
    `<svg viewBox="0 0 ${width} 356" role="img" aria-label="Latency and calls over time">`,
    gridLines(latency, Format.duration),
    gridLines(traffic, Format.count),
    ...areas,
    ...lines,
    ...bars,
    timeAxis(time, 352),
    ...hover,
    "</svg>"
  ].join("")
}

/** A bar in a row of a table: `part` of `whole`. */
export const bar = (name: string, part: number, whole: number): string =>
  `<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true"><rect class="${name}" width="${point(whole > 0 ? Math.max(0.6, (part / whole) * 100) : 0)}" height="8" rx="1"/></svg>`
