import * as Effect from "effect/Effect"
import type { Verdict } from "../Policy.js"
import { QueryRejected } from "../QueryError.js"

export const inspect = (_sql: string): Verdict =>
  Effect.fail(new QueryRejected({ reason: "unverifiable", message: "This engine is not built yet." }))
