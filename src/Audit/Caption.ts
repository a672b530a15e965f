/** What a report is about, in words. */
import * as Format from "./Format.js"
import type { Report } from "./Report.js"

/** The logs' names. */
export const files = ({ files }: Report): string =>
  files.length > 3 ? `${files.slice(0, 3).join(", ")} and ${files.length - 3} more` : files.join(", ")

export const period = ({ first, last, since }: Report): string =>
  first === null || last === null
    ? since === null
      ? "no entries"
      : `no entries since ${Format.moment(since)}`
    : `${Format.moment(first)} to ${Format.moment(last)}`
