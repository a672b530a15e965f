/** A fault that would fail every call: it ends the process at its start, with everything that is wrong. */
import * as Schema from "effect/Schema"

/** One problem of the configuration. */
export const Problem = Schema.Struct({
  /** The key path, flag or variable. */
  where: Schema.String,
  expected: Schema.String,
  found: Schema.String
})
export type Problem = typeof Problem.Type

export class FatalError extends Schema.TaggedError<FatalError>()("FatalError", {
  problems: Schema.NonEmptyArray(Problem)
}) {
  override get message(): string {
    const lines = this.problems.map(
      ({ expected, found, where }) => `  ${where}: expected ${expected}; found ${found}`
    )
    return ["mcp-query cannot start:", ...lines, "Try mcp-query --help."].join("\n")
  }
}

/** The exit codes of the command. */
export const exitCode = { ok: 0, failed: 1, unexpected: 70, configuration: 78 } as const
