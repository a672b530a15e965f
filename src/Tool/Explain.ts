/** The tool `explain`: how the engine would run a statement, which is never executed. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Dialect } from "../Dialect.js"
import type { Hints } from "../Hint.js"
import { QueryRejected } from "../QueryError.js"
import type { SourcesService } from "../Sources.js"
import { decodeArguments, paramsField, sourceField, sourceOf, sqlField, type Tool } from "../Tool.js"

/** The engine's plan, a node a line, children indented. */
export const PlanResult = Schema.Struct({ plan: Schema.Array(Schema.String) })
export type PlanResult = typeof PlanResult.Type

/** What may be run, and yet has no plan. */
const withoutPlan = /(?:explain|pragma|show)\b/iy

/** White space, semicolons and line comments, or the beginning of a block comment. */
const between = /[\s;]+|--[^\n]*|\/\*/y
const commentEdge = /\/\*|\*\//g

/** Where a block comment ends that starts at `start`, or the text's end. */
const commentEnd = (sql: string, start: number, nested: boolean): number => {
  if (!nested) {
    const end = sql.indexOf("*/", start + 2)
    return end < 0 ? sql.length : end + 2
  }
  commentEdge.lastIndex = start + 2
  for (let depth = 1; depth > 0; ) {
    const edge = commentEdge.exec(sql)?.[0]
    if (edge === undefined) return sql.length
    depth += edge === "/*" ? 1 : -1
  }
  return commentEdge.lastIndex
}

/** Where the first word of a statement begins. Every character is looked at once: the text is the caller's. */
const beginning = (sql: string, nested: boolean): number => {
  for (let at = 0; ; ) {
    between.lastIndex = at
    const found = between.exec(sql)?.[0]
    if (found === undefined) return at
    at = found === "/*" ? commentEnd(sql, at, nested) : between.lastIndex
  }
}

const hasPlan = ({ nestedComments = false }: Dialect, sql: string): boolean => {
  withoutPlan.lastIndex = beginning(sql, nestedComments)
  return !withoutPlan.test(sql)
}

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
        const query = yield* source.admit({ sql: args.sql, params: args.params ?? [] })
        if (!hasPlan(source.dialect, args.sql)) return yield* noPlan
        const plan = yield* source
          .run(limits.timeoutMs, (adapter, remainingMs) =>
            adapter.explain(query, { ...limits, format: "columnar", timeoutMs: remainingMs })
          )
          .pipe(hints.onFailure(source, args.sql))
        return { value: { plan } }
      })
  }
}
