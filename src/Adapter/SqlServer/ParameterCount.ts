/** Whether a statement's parameters and its values are as many; the engine itself does not mind one too many. */
import { QueryFailed } from "../../QueryError.js"
import { parameterName } from "./Execution.js"
import { tokens } from "./Tokens.js"

/** The engine takes no more with one request. */
const mostValues = 2100

const fault = (message: string) =>
  new QueryFailed({
    reason: "parameters",
    message,
    hint: "Write @p1, @p2, … and give one value for each in `params`."
  })

/** The names of parameters and variables in a statement, lower case, with their `@`. */
interface Names {
  readonly variables: ReadonlySet<string>
  /** XQuery takes a parameter by its name in a string: `sql:variable("@p1")`. */
  readonly inTexts: ReadonlySet<string>
}

const namesIn = (sql: string): Names => {
  const variables = new Set<string>()
  const inTexts = new Set<string>()
  for (const { kind, text } of tokens(sql)) {
    // `@@name` reads the engine's state and is no variable.
    if (kind === "variable" && !text.startsWith("@@")) variables.add(text.toLowerCase())
    if (kind === "string") for (const [name] of text.matchAll(/@p[0-9]+/gi)) inTexts.add(name.toLowerCase())
  }
  return { variables, inTexts }
}

/** What is wrong, or undefined. */
export const parameterFault = (sql: string, count: number): QueryFailed | undefined => {
  const values = count === 1 ? "1 value was" : `${count} values were`
  if (count > mostValues) return fault(`The engine takes at most ${mostValues} values, but ${values} given.`)
  const { inTexts, variables } = namesIn(sql)
  const given = new Set(Array.from({ length: count }, (_, index) => `@${parameterName(index + 1)}`))
  for (const name of variables)
    if (!given.has(name))
      return fault(
        /^@p[1-9][0-9]*$/.test(name)
          ? `The statement asks for ${name}, but ${values} given.`
          : `The variable ${name} is not declared; parameters are called @p1, @p2, ….`
      )
  const unused = [...given].find((name) => !variables.has(name) && !inTexts.has(name))
  return unused === undefined ? undefined : fault(`The statement has no ${unused}, but ${values} given.`)
}
