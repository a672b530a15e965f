/**
 * The parameters of a call with all digits of their integers: `JSON.parse` rounds those beyond 2^53, and another row
 * would be asked for than the client named. They become bigint; everything else of the message stays as it was parsed.
 */
import { randomUUID } from "node:crypto"
import { isJsonObject } from "../JsonObject.js"
import { stringEnd } from "../JsonText.js"

const paramsOf = (message: unknown): ReadonlyArray<unknown> | undefined => {
  const params = isJsonObject(message) ? message["params"] : undefined
  const args = isJsonObject(params) ? params["arguments"] : undefined
  const values = isJsonObject(args) ? args["params"] : undefined
  return Array.isArray(values) ? values : undefined
}

const isRounded = (value: unknown) =>
  typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value)

const number = /-?\d+(\.\d+)?([eE][+-]?\d+)?/y

/** Beyond what a double holds, and so no parameter: reading millions of digits as an integer would take seconds. */
const mostDigits = 310

/** The same JSON with each long integer as a string behind `mark`. */
const marked = (text: string, mark: string): string => {
  let result = ""
  let copied = 0
  for (let at = 0; at < text.length; at++) {
    const c = text[at] ?? ""
    if (c === '"') at = stringEnd(text, at)
    else if (c === "-" || (c >= "0" && c <= "9")) {
      number.lastIndex = at
      const [digits = c, fraction, exponent] = number.exec(text) ?? []
      const isInteger = fraction === undefined && exponent === undefined
      if (digits.length > 15 && digits.length <= mostDigits && isInteger) {
        result += `${text.slice(copied, at)}"${mark}${digits}"`
        copied = at + digits.length
      }
      at += digits.length - 1
    }
  }
  return result + text.slice(copied)
}

/** `message` is what `JSON.parse` made of `text`; the answer is it, or a copy whose parameters hold every digit. */
export const restore = (message: unknown, text: string): unknown => {
  if (!paramsOf(message)?.some(isRounded) || !isJsonObject(message)) return message
  const mark = `${randomUUID()}:`
  const exact = paramsOf(JSON.parse(marked(text, mark)))?.map((value) =>
    typeof value === "string" && value.startsWith(mark) ? BigInt(value.slice(mark.length)) : value
  )
  const params = isJsonObject(message["params"]) ? message["params"] : {}
  const args = isJsonObject(params["arguments"]) ? params["arguments"] : {}
  return {
    ...message,
    params: {
      ...params,
      arguments: {
        ...args,
        // Those within 2^53 stay numbers.
        params: exact?.map((value) =>
          typeof value === "bigint" && Number.isSafeInteger(Number(value)) ? Number(value) : value
        )
      }
    }
  }
}
