/** Whether a statement's parameters and its values are as many; the engine itself does not mind one too many. */
import { QueryFailed } from "../../QueryError.js"
import { parameterName } from "./Execution.js"
import { tokens, variablesOf } from "./Tokens.js"

const fault = (message: string) =>
  new QueryFailed({
    reason: "parameters",
    message,
    hint: "Write @p1, @p2, … and give one value for each in `params`."
  })

/** XQuery takes a parameter by its name in a string: `sql:variable("@p1")`. */
const isNamedInText = (sql: string, name: string) =>
  [...tokens(sql)].some(({ kind, text }) => kind === "string" && text.toLowerCase().includes(name))

/** What is wrong, or undefined. */
export const parameterFault = (sql: string, count: number): QueryFailed | undefined => {
  const found = variablesOf(sql)
  const given = new Set(Array.from({ length: count }, (_, index) => `@${parameterName(index + 1)}`))
  for (const name of found)
    if (!given.has(name))
      return fault(
        /^@p[1-9][0-9]*$/.test(name)
          ? `The statement asks for ${name}, but ${count === 1 ? "1 value was" : `${count} values were`} given.`
          : `The variable ${name} is not declared; parameters are called @p1, @p2, ….`
      )
  const unused = [...given].find((name) => !found.has(name) && !isNamedInText(sql, name))
  return unused === undefined
    ? undefined
    : fault(
        `The statement has no ${unused}, but ${count === 1 ? "1 value was" : `${count} values were`} given.`
      )
}
