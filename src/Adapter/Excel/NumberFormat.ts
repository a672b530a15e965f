/** Which number formats show a date or a time. */

/** `clock` is a time of day or an elapsed time: both are hours, minutes and seconds. */
export type FormatKind = "number" | "date" | "datetime" | "clock"

/** The formats that a file may name by number alone, where they are no plain numbers. 27–36 and 50–58 are East Asian dates. */
export const builtinKind = (id: number): FormatKind => {
  if (id >= 14 && id <= 17) return "date"
  if (id >= 18 && id <= 21) return "clock"
  if (id === 22) return "datetime"
  if (id >= 27 && id <= 31) return "date"
  if (id >= 32 && id <= 35) return "clock"
  if (id === 36) return "date"
  if (id >= 45 && id <= 47) return "clock"
  if (id >= 50 && id <= 58) return "date"
  return "number"
}

/** What stands for itself: quoted text, escaped characters, padding, fillers, and brackets that are no elapsed time. */
const literals = /"[^"]*"?|\\.|_.|\*.|\[(?!(?:h+|m+|s+)\])[^\]]*\]/gi

const kindOfSection = (section: string): FormatKind => {
  const code = section
    .replace(literals, " ")
    .replace(/general|standard/gi, " ")
    .replace(/[ap]m\/[ap]m|a\/p/gi, "h")
    .replace(/e[+-]/gi, " ")
    .toLowerCase()
  const elapsed = /\[(h+|m+|s+)\]/.test(code)
  const clock = elapsed || /[hs]/.test(code)
  // An m is a month unless hours or seconds stand beside it.
  const months = code
    .replace(/(\[h+\]|h+)[^a-z]*m+/g, " ")
    .replace(/m+[^a-z]*(\[s+\]|s+)/g, " ")
    .replace(/\[m+\]/g, " ")
  const date = !elapsed && /[ydgbem]|aaa/.test(months)
  if (date) return clock ? "datetime" : "date"
  return clock ? "clock" : "number"
}

/** No program writes longer codes; the patterns here are not made for them. */
const longestCode = 1024

/** The kind of a custom format, by its first section: the one of positive numbers. */
export const kindOfCode = (code: string): FormatKind => {
  if (code.length > longestCode) return "number"
  const first = /^(?:"[^"]*"?|\\.|\[[^\]]*\]|[^;"\\[])*/.exec(code)?.[0] ?? ""
  return kindOfSection(first)
}
