/** Runs of digits that a file or an engine may make as long as it likes. Plain code: child processes run it, too. */

/** The same without zeros at its end: `/0+$/` begins anew at each zero of a long run that something else ends. */
export const withoutTrailingZeros = (digits: string): string => {
  let end = digits.length
  while (digits[end - 1] === "0") end--
  return digits.slice(0, end)
}
