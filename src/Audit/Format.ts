/** Figures as people read them. */

const grouped = new Intl.NumberFormat("en")

export const count = (value: number): string => grouped.format(value)

const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 })

/** For little space: from a million on with three digits. */
export const shortCount = (value: number): string => (value < 1e6 ? count(value) : compact.format(value))

export const percent = (part: number, whole: number): string => {
  if (whole === 0) return "0 %"
  const value = (part / whole) * 100
  return `${value > 0 && value < 1 ? "<1" : Math.round(value)} %`
}

/** Three digits, with a unit that fits. */
export const duration = (ms: number): string => {
  if (ms < 10) return `${Math.round(ms * 10) / 10} ms`
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${Number((ms / 1000).toFixed(ms < 10_000 ? 2 : 1))} s`
  return `${Number((ms / 60_000).toFixed(1))} min`
}

export const bytes = (value: number): string => {
  const units = ["B", "kB", "MB", "GB", "TB"]
  let [size, unit] = [value, 0]
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000
    unit++
  }
  return `${unit === 0 || size >= 100 ? Math.round(size) : size.toFixed(1)} ${units[unit]}`
}

/** `2026-11-30 10:00:00 UTC` */
export const moment = (iso: string): string => {
  const time = new Date(iso)
  return Number.isNaN(time.getTime())
    ? iso
    : `${time
        .toISOString()
        .replace("T", " ")
        .replace(/\.\d+Z$/, "")} UTC`
}

/** On one line, without characters that steer a terminal. */
export const plainLine = (text: string): string =>
  text.replace(/\s+/g, " ").replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}]/gu, "�")

export const clip = (text: string, most: number): string => {
  const characters = [...text.slice(0, most * 4)]
  return characters.length <= most && text.length <= most * 4
    ? text
    : `${characters.slice(0, Math.max(0, most - 1)).join("")}…`
}
