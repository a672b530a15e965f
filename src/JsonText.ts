/** Where the strings of a valid JSON text end, for those who must see more than `JSON.parse` tells. */

/** The index of the quote that ends the string that begins at `start`. */
export const stringEnd = (text: string, start: number): number => {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let backslashes = 0
    while (text[end - 1 - backslashes] === "\\") backslashes++
    if (backslashes % 2 === 0) return end
  }
  return text.length - 1
}
