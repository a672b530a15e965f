#!/usr/bin/env node
/** From the command line to a command, and from its end to an exit code; nothing else. */
import { writeSync } from "node:fs"
import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Arguments from "./Cli/Arguments.js"
import { serve } from "./Cli/Serve.js"
import { whileRead } from "./Cli/WhileRead.js"
import { exitCode, FatalError, type Problem } from "./FatalError.js"
import { load } from "./Settings.js"
import { version } from "./Version.js"

const parse = (argv: ReadonlyArray<string>) =>
  Arguments.parse(
    {
      args: [...argv],
      allowPositionals: true,
      options: {
        config: { type: "string" },
        help: { type: "boolean", short: "h" },
        version: { type: "boolean", short: "v" },
        json: { type: "boolean" }
      }
    },
    "SOURCE... or --config FILE, --help, --version"
  )

/** The options of each command beside --help and --version; `audit` has its own. */
const optionsOf = { serve: ["config"], check: ["config", "json"], demo: [] } as const

const isCommand = (text: string | undefined): text is "check" | "demo" => text === "check" || text === "demo"

/** What was given and has no meaning for the command. */
const meaningless = (
  command: keyof typeof optionsOf,
  options: ReadonlyArray<string>,
  sources: number
): ReadonlyArray<Problem> => {
  const known: ReadonlyArray<string> = optionsOf[command]
  const takes = known.length === 0 ? "no option" : known.map((name) => `--${name}`).join(", ")
  return [
    ...options
      .filter((name) => !known.includes(name))
      .map((name) => ({
        where: `--${name}`,
        expected: `${takes} with ${command}`,
        found: "a flag without meaning"
      })),
    ...(command === "demo" && sources > 0
      ? [{ where: "the command line", expected: "demo alone", found: "more arguments" }]
      : [])
  ]
}

/** A reader that is gone has seen what it wanted. */
const write = (fd: 1 | 2, text: string): void => {
  try {
    writeSync(fd, `${text}\n`)
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EPIPE")) throw error
  }
}

const print = (text: string): Effect.Effect<number | undefined> =>
  Effect.sync(() => {
    write(1, text)
    return undefined
  })

/** Succeeds with an exit code where it is not 0. */
const program = Effect.gen(function* () {
  const argv = process.argv.slice(2)
  if (argv[0] === "audit") {
    const { audit } = yield* Effect.promise(() => import("./Cli/Audit.js"))
    return yield* audit(argv.slice(1))
  }
  const { positionals, values } = yield* parse(argv)
  if (values.help) {
    const { help } = yield* Effect.promise(() => import("./Cli/Help.js"))
    return yield* print(help)
  }
  if (values.version) {
    return yield* print(version)
  }
  const [first, ...rest] = positionals
  const command = isCommand(first) ? first : "serve"
  const { config, help: _, version: __, ...others } = values
  const given = Object.keys(config === undefined ? others : { config, ...others })
  const problems = meaningless(command, given, rest.length)
  if (Arr.isNonEmptyReadonlyArray(problems)) return yield* new FatalError({ problems })
  if (command === "demo") {
    const { demo } = yield* Effect.promise(() => import("./Cli/Demo.js"))
    return yield* whileRead(Effect.as(demo, exitCode.ok))
  }
  const environment = process.env
  if (command === "check") {
    const { check } = yield* Effect.promise(() => import("./Cli/Check.js"))
    const settings = yield* load({ sources: rest, config, environment })
    return yield* whileRead(check(settings, { json: values.json === true }))
  }
  const settings = yield* load({ sources: positionals, config, environment })
  return yield* serve(settings)
})

const exit = await Effect.runPromiseExit(program)
if (Exit.isSuccess(exit)) process.exit(exit.value ?? exitCode.ok)
const failure = Cause.squash(exit.cause)
write(2, failure instanceof Error ? failure.message : String(failure))
process.exit(failure instanceof FatalError ? exitCode.configuration : exitCode.unexpected)
