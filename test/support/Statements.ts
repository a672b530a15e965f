/** Counts the statements that `@effect/sql` sends, by their spans. */
import * as Effect from "effect/Effect"
import * as Tracer from "effect/Tracer"

export const countStatements = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    let statements = 0
    const outer = yield* Effect.tracer
    const counting = Tracer.make({
      span: (name, ...rest) => {
        if (name === "sql.execute") statements++
        return outer.span(name, ...rest)
      },
      context: (run) => run()
    })
    const value = yield* Effect.withTracer(effect, counting)
    return { value, statements }
  })
