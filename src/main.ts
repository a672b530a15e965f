#!/usr/bin/env node
/** From the command line to a command, and from its end to an exit code; nothing else. */
import { writeSync } from "node:fs"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Arguments from "./Cli/Arguments.js"
import { serve } from "./Cli/Serve.js"
import { exitCode, FatalError } from "./FatalError.js"
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

const print = (text: string): Effect.Effect<number | undefined> =>
  Effect.sync(() => {
    writeSync(1, `${text}\n`)
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
  const [command, ...rest] = positionals
  if (command === "demo") {
    const { demo } = yield* Effect.promise(() => import("./Cli/Demo.js"))
    return yield* demo
  }
  const { config } = values
  const environment = process.env
  if (command === "check") {
    const { check } = yield* Effect.promise(() => import("./Cli/Check.js"))
    const settings = yield* load({ sources: rest, config, environment })
    return yield* check(settings, { json: values.json === true })
  }
  const settings = yield* load({ sources: positionals, config, environment })
  return yield* serve(settings)
})

const exit = await Effect.runPromiseExit(program)
if (Exit.isSuccess(exit)) process.exit(exit.value ?? exitCode.ok)
const failure = Cause.squash(exit.cause)
writeSync(2, `${failure instanceof Error ? failure.message : String(failure)}\n`)
process.exit(failure instanceof FatalError ? exitCode.configuration : exitCode.unexpected)
