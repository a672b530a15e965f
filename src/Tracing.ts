/**
 * Whether spans are read at all. Effect's own tracer makes them and drops them, which costs as much as a seventh of a
 * short query.
 */
import * as Context from "effect/Context"
import * as DefaultServices from "effect/DefaultServices"
import * as Effect from "effect/Effect"
import * as Tracer from "effect/Tracer"

const unread = Context.get(DefaultServices.liveServices, Tracer.Tracer)

/** `traced` where the application has provided a tracer (say, that of `@effect/opentelemetry`), `untraced` elsewhere. */
export const whereRead = <A, E, R>(
  untraced: Effect.Effect<A, E, R>,
  traced: () => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => Effect.tracerWith((tracer) => (tracer === unread ? untraced : traced()))
