/** Moments as PostgreSQL prints them under `DateStyle` ISO, turned into UTC by exact arithmetic on their digits. */

const printed =
  /^(\d{4,})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(\.\d+)?([+-])(\d\d)(?::(\d\d))?(?::(\d\d))?( BC)?$/

/** Days since 1970-01-01 in the proleptic Gregorian calendar, which is the engine's for all years. */
const daysOf = (year: number, month: number, day: number): number => {
  const y = month <= 2 ? year - 1 : year
  const era = Math.floor(y / 400)
  const ofEra = y - era * 400
  const ofYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1
  return era * 146_097 + ofEra * 365 + Math.floor(ofEra / 4) - Math.floor(ofEra / 100) + ofYear - 719_468
}

const dateOf = (days: number): { year: number; month: number; day: number } => {
  const z = days + 719_468
  const era = Math.floor(z / 146_097)
  const ofEra = z - era * 146_097
  const yearOfEra = Math.floor(
    (ofEra - Math.floor(ofEra / 1460) + Math.floor(ofEra / 36_524) - Math.floor(ofEra / 146_096)) / 365
  )
  const ofYear = ofEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100))
  const shifted = Math.floor((5 * ofYear + 2) / 153)
  const month = shifted + (shifted < 10 ? 3 : -9)
  return {
    year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0),
    month,
    day: ofYear - Math.floor((153 * shifted + 2) / 5) + 1
  }
}

const two = (n: number) => String(n).padStart(2, "0")

interface Moment {
  readonly year: number
  readonly date: string
  readonly time: string
}

/** Null for what is no moment: `infinity` and `-infinity`. */
const inUtc = (text: string): Moment | null => {
  const found = printed.exec(text)
  if (found === null) return null
  const [, years, months, days, hours, minutes, seconds, fraction = "", sign, zh, zm = "0", zs = "0", bc] =
    found
  const offset = (Number(zh) * 3600 + Number(zm) * 60 + Number(zs)) * (sign === "-" ? -1 : 1)
  // 1 BC is the year 0 of the calendar that the arithmetic uses.
  const year = bc === undefined ? Number(years) : 1 - Number(years)
  const second = Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds) - offset
  const {
    year: y,
    month,
    day
  } = dateOf(daysOf(year, Number(months), Number(days)) + Math.floor(second / 86_400))
  const ofDay = ((second % 86_400) + 86_400) % 86_400
  return {
    year: y,
    date: `${String(y > 0 ? y : 1 - y).padStart(4, "0")}-${two(month)}-${two(day)}`,
    time: `${two(Math.floor(ofDay / 3600))}:${two(Math.floor(ofDay / 60) % 60)}:${two(ofDay % 60)}${fraction}`
  }
}

const engineText = ({ year, date, time }: Moment) => `${date} ${time}+00${year > 0 ? "" : " BC"}`

/** A `timestamp with time zone` as the engine itself would print it in UTC. */
export const utcText = (text: string): string => {
  const moment = inUtc(text)
  return moment === null ? text : engineText(moment)
}

/** A `timestamp with time zone` in UTC: `2024-02-29T13:05:01.5Z`, or the engine's own text beyond the years 1 to 9999. */
export const timestamptz = (text: string): string => {
  // Most sessions are in UTC, where there is nothing to compute.
  if (text.endsWith("+00") && text[4] === "-") return `${text.slice(0, 10)}T${text.slice(11, -3)}Z`
  const moment = inUtc(text)
  if (moment === null) return text
  const { year, date, time } = moment
  return year > 0 && year <= 9999 ? `${date}T${time}Z` : engineText(moment)
}

/** A `timestamp without time zone`: no shift, only the `T` of ISO 8601 within the years 1 to 9999. */
export const timestamp = (text: string): string =>
  text[4] === "-" && text[10] === " " && !text.endsWith("BC")
    ? `${text.slice(0, 10)}T${text.slice(11)}`
    : text

/** A `time with time zone` with its offset as `+HH:MM`, and seconds only where it has some. */
export const timetz = (text: string): string => text.replace(/([+-]\d\d)$/, "$1:00")
