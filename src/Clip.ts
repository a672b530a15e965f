/** The beginning of a text, with `…` where more followed; no half of a surrogate pair is left at its end. */
export const clip = (text: string, most: number): string =>
  text.length <= most ? text : `${text.slice(0, most).replace(/[\ud800-\udbff]$/, "")}…`
