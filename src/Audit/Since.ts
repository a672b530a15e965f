/** `--since`: a moment, or how long ago. */
import * as Either from "effect/Either"

const units = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const

const isUnit = (text: string): text is keyof typeof units => Object.hasOwn(units, text)

export const forms = "an ISO 8601 time (2026-11-30T10:00:00Z) or a duration (90s, 15m, 1h, 7d, 2w)"

/** The moment in milliseconds of the epoch, or what was expected. A date alone begins in the local time zone. */
export const parse = (text: string, now: number): Either.Either<number, string> => {
  const [, amount, unit] = /^(\d+(?:\.\d+)?)([smhdw])$/i.exec(text.trim()) ?? []
  const name = unit?.toLowerCase()
  if (amount !== undefined && name !== undefined && isUnit(name))
    return within(now - Number(amount) * units[name])
  const isDate = /^\d{4}-\d{2}-\d{2}$/.test(text)
  const isTime = /^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?$/i.test(text)
  const moment = isDate || isTime ? Date.parse(isDate ? `${text}T00:00` : text) : Number.NaN
  return within(moment)
}

/** A moment that has a date. */
const within = (moment: number): Either.Either<number, string> =>
  Number.isNaN(new Date(moment).getTime()) ? Either.left(forms) : Either.right(moment)
