/** The tools of an application with its own sources, which logs nothing. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { CallLog, Sources, Tools } from "../../src/index.js"

export const quiet = Layer.succeed(CallLog.CallLog, {
  call: () => Effect.void,
  event: () => Effect.void
})

export const toolsOn = (...options: ReadonlyArray<Sources.SourceOptions>) =>
  Tools.layer.pipe(Layer.provide(Sources.layer(options)), Layer.provide(quiet))
