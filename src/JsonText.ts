/** Where the strings and numbers of a valid JSON text stand, for those who must see more than `JSON.parse` tells. */

/** The index of the quote that ends the string that begins at `start`. */
export const stringEnd = (text: string, start: number): number => {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let backslashes = 0
    while (text[end - 1 - backslashes] === "\\") backslashes++
    if (backslashes % 2 === 0) return end
  }
  return text.length - 1
}

const number = /-?\d+(\.\d+)?([eE][+-]?\d+)?/y

/** The number that begins at `start`; `isInteger`: it has neither fraction nor exponent. */
export const numberAt = (
  text: string,
  start: number
): { readonly digits: string; readonly isInteger: boolean } => {
  number.lastIndex = start
  const [digits = "", fraction, exponent] = number.exec(text) ?? []
  return { digits, isInteger: fraction === undefined && exponent === undefined }
}
