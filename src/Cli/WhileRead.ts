/** Commands that print, and the end of whoever reads them. */
import * as Effect from "effect/Effect"
import { exitCode } from "../FatalError.js"

/** Ends a command that prints, in order, once nobody reads it any more. */
export const whileRead = <E>(command: Effect.Effect<number, E>): Effect.Effect<number, E> =>
  Effect.raceFirst(
    command,
    Effect.async<number>((resume) => {
      // It stays to the end of the process: what is printed until then fails in the same way.
      process.stdout.on("error", () => resume(Effect.succeed(exitCode.ok)))
    })
  )
