/** The tool `explain`: how the engine would run a statement, which is never executed. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Hints } from "../Hint.js"
import * as Policy from "../Policy.js"
import { QueryRejected } from "../QueryError.js"
import type { SourcesService } from "../Sources.js"
import { decodeArguments, paramsField, sourceField, sourceOf, sqlField, type Tool } from "../Tool.js"

/** The engine's plan, a node a line, children indented. */
export const PlanResult = Schema.Struct({ plan: Schema.Array(Schema.String) })
export type PlanResult = typeof PlanResult.Type

/** What may be run, and yet has no plan; behind white space and comments. */
const withoutPlan = /^(?:\s|--[^\n]*(?:\n|$)|\/\*[\s\S]*?\*\/)*(?:explain|pragma|show)\b/i

const noPlan = new QueryRejected({
  reason: "statement_type",
  message: "Only a SELECT, VALUES, TABLE or WITH statement has a plan.",
  hint: "Send the statement itself, without EXPLAIN."
})

export const make = (sources: SourcesService, hints: Hints): Tool<PlanResult> => {
  const input = Schema.Struct({ sql: sqlField, ...sourceField(sources), params: paramsField })
  const decode = decodeArguments(input)
  return {
    name: "explain",
    title: "Explain a query's plan",
    description:
      "Returns the engine's plan of one read-only SQL statement without executing it. " +
      "Use it when a query is slow or timed out.",
    input,
    output: PlanResult,
    run: (raw) =>
      Effect.gen(function* () {
        const args = yield* decode(raw)
        const source = sourceOf(sources, args.source)
        const { limits } = source
        const query = yield* Policy.admit(source.engine, { sql: args.sql, params: args.params ?? [] })
        if (withoutPlan.test(args.sql)) return yield* noPlan
        const plan = yield* source
          .run(limits.timeoutMs, (adapter, remainingMs) =>
            adapter.explain(query, { ...limits, format: "columnar", timeoutMs: remainingMs })
          )
          .pipe(hints.onFailure(source, args.sql))
        return { value: { plan } }
      })
  }
}
