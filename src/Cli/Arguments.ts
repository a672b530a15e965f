/** The command line's options and positional arguments; what does not fit is fatal. */
import { type ParseArgsConfig, parseArgs } from "node:util"
import * as Effect from "effect/Effect"
import { FatalError } from "../FatalError.js"

/** `expected` says in a few words what the command takes. An option that stands twice has no meaning, either. */
export const parse = <T extends ParseArgsConfig>(
  config: T,
  expected: string
): Effect.Effect<ReturnType<typeof parseArgs<T>>, FatalError> =>
  Effect.try({
    try: () => {
      const names = (parseArgs({ ...config, tokens: true }).tokens ?? []).flatMap((token) =>
        token.kind === "option" ? [token.rawName] : []
      )
      const twice = names.find((name, index) => names.indexOf(name) < index)
      if (twice !== undefined) throw new Error(`Option '${twice}' stands twice`)
      return parseArgs(config)
    },
    catch: (error) =>
      new FatalError({
        problems: [
          {
            where: "the command line",
            expected,
            found: error instanceof Error ? (error.message.split(". ")[0] ?? error.message) : String(error)
          }
        ]
      })
  })
