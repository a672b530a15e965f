/** The command line's options and positional arguments; what does not fit is fatal. */
import { type ParseArgsConfig, parseArgs } from "node:util"
import * as Effect from "effect/Effect"
import { FatalError } from "../FatalError.js"

/** `expected` says in a few words what the command takes. */
export const parse = <T extends ParseArgsConfig>(
  config: T,
  expected: string
): Effect.Effect<ReturnType<typeof parseArgs<T>>, FatalError> =>
  Effect.try({
    try: () => parseArgs(config),
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
