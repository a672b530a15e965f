/** The text forms of arrays, composites and ranges: read into their parts, and written as the engine writes them. */

/** An array's elements: texts, nulls, and arrays of them. */
export type Elements = ReadonlyArray<string | null | Elements>

const arrayStart = (text: string): number => (text.startsWith("[") ? text.indexOf("=") + 1 : 0)

/** Reads `{1,"a b",NULL,{2}}`; lower bounds in front of it are passed over. */
export const readArray = (text: string, delimiter: string): Elements => {
  let at = arrayStart(text)
  const quoted = (): string => {
    let value = ""
    let from = ++at
    for (; text[at] !== '"'; at++) {
      if (at >= text.length) throw new Error("array text without end")
      if (text[at] !== "\\") continue
      value += text.slice(from, at)
      // What is escaped stands for itself.
      from = ++at
    }
    value += text.slice(from, at)
    at++
    return value
  }
  const bare = (): string | null => {
    const from = at
    while (at < text.length && text[at] !== delimiter && text[at] !== "}") at++
    const value = text.slice(from, at)
    return value === "NULL" ? null : value
  }
  const array = (): Elements => {
    const elements: Array<string | null | Elements> = []
    at++
    if (text[at] === "}") {
      at++
      return elements
    }
    for (;;) {
      elements.push(text[at] === "{" ? array() : text[at] === '"' ? quoted() : bare())
      if (text[at] !== delimiter) break
      at++
    }
    if (text[at] !== "}") throw new Error("array text without end")
    at++
    return elements
  }
  return array()
}

const writeElements = (elements: Elements, delimiter: string): string =>
  `{${elements
    .map((element) => {
      if (element === null) return "NULL"
      if (typeof element !== "string") return writeElements(element, delimiter)
      const plain =
        element !== "" &&
        !/[\s"\\{}]/.test(element) &&
        !element.includes(delimiter) &&
        element.toUpperCase() !== "NULL"
      return plain ? element : `"${element.replace(/["\\]/g, "\\$&")}"`
    })
    .join(delimiter)}}`

/** An array as a parameter's text. */
export const arrayText = (
  values: ReadonlyArray<unknown>,
  text: (value: unknown) => string | null
): string => {
  const elements = (array: ReadonlyArray<unknown>): Elements =>
    array.map((value) => (Array.isArray(value) ? elements(value) : text(value)))
  return writeElements(elements(values), ",")
}

/** Every text inside `elements`, replaced. */
export const mapElements = <A>(
  elements: Elements,
  f: (text: string) => A
): ReadonlyArray<A | null | ReadonlyArray<unknown>> =>
  elements.map((element) =>
    element === null ? null : typeof element === "string" ? f(element) : mapElements(element, f)
  )

const mapTexts = (elements: Elements, f: (text: string) => string): Elements =>
  elements.map((element) =>
    element === null ? null : typeof element === "string" ? f(element) : mapTexts(element, f)
  )

/** An array's text with every element's text replaced; its bounds stay. */
export const rewriteArray = (text: string, delimiter: string, f: (element: string) => string): string =>
  text.slice(0, arrayStart(text)) + writeElements(mapTexts(readArray(text, delimiter), f), delimiter)

/** Reads what stands between brackets, separated by commas, quotes doubled or escaped; an empty part is null. */
const readParts = (body: string): ReadonlyArray<string | null> => {
  const parts: Array<string | null> = []
  let value: string | null = null
  let inQuotes = false
  for (let at = 0; at < body.length; at++) {
    const character = body[at]
    if (character === "\\") {
      at++
      value = (value ?? "") + (body[at] ?? "")
    } else if (character === '"') {
      if (inQuotes && body[at + 1] === '"') {
        at++
        value += '"'
      } else {
        inQuotes = !inQuotes
        value ??= ""
      }
    } else if (character === "," && !inQuotes) {
      parts.push(value)
      value = null
    } else {
      value = (value ?? "") + character
    }
  }
  parts.push(value)
  return parts
}

const writePart = (part: string | null, special: RegExp): string => {
  if (part === null) return ""
  return part === "" || special.test(part) ? `"${part.replace(/["\\]/g, "$&$&")}"` : part
}

/** A composite's text with each field replaced by `fields[i]`; null leaves a field as it is. */
export const rewriteComposite = (
  text: string,
  fields: ReadonlyArray<((field: string) => string) | null>
): string =>
  `(${readParts(text.slice(1, -1))
    .map((part, i) => {
      const f = fields[i]
      return writePart(part === null || f === undefined || f === null ? part : f(part), /[\s"\\(),]/)
    })
    .join(",")})`

/** A range's text with both bounds replaced. */
export const rewriteRange = (text: string, f: (bound: string) => string): string =>
  text === "empty"
    ? text
    : `${text.slice(0, 1)}${readParts(text.slice(1, -1))
        .map((part) => writePart(part === null ? null : f(part), /[\s"\\()[\],]/))
        .join(",")}${text.slice(-1)}`

/** A multirange's text with the bounds of each range replaced. */
export const rewriteMultirange = (text: string, f: (bound: string) => string): string =>
  text.replace(/[[(](?:"(?:[^"\\]|\\.|"")*"|[^"\])])*[\])]/g, (range) => rewriteRange(range, f))
