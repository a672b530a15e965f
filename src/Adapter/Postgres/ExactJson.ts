/** JSON text as a value, where a JavaScript value says exactly the same. */
import { withoutTrailingZeros } from "../../Digits.js"
import { stringEnd } from "../../JsonText.js"
import type { Cell } from "../../Rows.js"

/** A decimal number's sign, digits and exponent, so that equal numbers have equal texts. */
const canonical = (number: string): string => {
  const [, sign = "", whole = "", fraction = "", exponent = "0"] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(number) ?? []
  const digits = `${whole}${fraction}`.replace(/^0+/, "")
  const significant = withoutTrailingZeros(digits)
  if (significant === "") return "0"
  const scale = Number(exponent) - fraction.length + (digits.length - significant.length)
  return `${sign}${significant}e${scale}`
}

const isExact = (number: string): boolean => {
  const value = Number(number)
  return Number.isFinite(value) && canonical(number) === canonical(String(value))
}

/** Deeper structures are left as text: serialising them would exhaust the stack. */
const maxDepth = 500

/** Digits, signs, the point and the letter of an exponent. */
const isNumberPart = (c: number) =>
  (c >= 0x30 && c <= 0x39) || c === 0x2e || c === 0x2d || c === 0x2b || c === 0x45 || c === 0x65

/** Whether `JSON.parse` keeps everything: all numbers, and no object with a key twice. */
const isFaithful = (text: string): boolean => {
  const open: Array<Set<string> | null> = []
  let keyNext = false
  for (let at = 0; at < text.length; at++) {
    switch (text[at]) {
      case '"': {
        const end = stringEnd(text, at)
        const keys = open.at(-1)
        if (keyNext && keys) {
          const written = text.slice(at + 1, end)
          const key: string = written.includes("\\") ? JSON.parse(`"${written}"`) : written
          if (keys.has(key)) return false
          keys.add(key)
        }
        at = end
        break
      }
      case "{":
        open.push(new Set())
        keyNext = true
        break
      case "[":
        open.push(null)
        keyNext = false
        break
      case "}":
      case "]":
        open.pop()
        break
      case ",":
        keyNext = open.at(-1) !== null
        break
      case ":":
        keyNext = false
        break
      case "-":
      case "0":
      case "1":
      case "2":
      case "3":
      case "4":
      case "5":
      case "6":
      case "7":
      case "8":
      case "9": {
        // Millions of short numbers are passed over without a copy of each.
        let end = at + 1
        let hasExponent = false
        for (let c = text.charCodeAt(end); isNumberPart(c); c = text.charCodeAt(++end))
          hasExponent ||= c === 0x45 || c === 0x65
        if ((hasExponent || end - at > 15) && !isExact(text.slice(at, end))) return false
        at = end - 1
        break
      }
    }
    if (open.length > maxDepth) return false
  }
  return true
}

/** The value of a JSON text, or the text itself where no value says the same. */
export const readJson = (text: string): Cell => {
  if (!isFaithful(text)) return text
  const value: Cell = JSON.parse(text)
  return value
}
