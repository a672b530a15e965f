/** PostgreSQL. The driver is loaded when an adapter is made, not when this module is. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Scope } from "effect/Scope"
import { Adapter, type AdapterService, guarded } from "../Adapter.js"
import { Config, hostsOf } from "./Postgres/Config.js"
import * as Telemetry from "./Telemetry.js"

export { Config, configFromUrl } from "./Postgres/Config.js"

/** The fields of {@link Config}; those that have a default may be left out. */
export type Options = Parameters<typeof Config.make>[0]

const databaseOf = (config: Config): Telemetry.Database => {
  const [first, ...others] = hostsOf(config)
  return {
    system: "postgresql",
    namespace: config.database ?? config.user,
    // Of several hosts, none can be named before one has answered.
    ...(others.length > 0 ? {} : { address: first?.host, port: first?.port })
  }
}

/**
 * An adapter for one database, with its own pool of sessions. Nothing is contacted before the first call; the end of
 * the scope closes every session. `options` may come from {@link configFromUrl}; one that does not fit {@link Config}
 * throws a `ParseError`.
 */
export const make = (options: Options): Effect.Effect<AdapterService, never, Scope> => {
  const config = Config.make(options)
  return Effect.promise(() => import("./Postgres/Service.js")).pipe(
    Effect.flatMap(({ make }) => make(config)),
    Effect.map((service) => Telemetry.traced(databaseOf(config), guarded(service)))
  )
}

/** The same as a Layer. */
export const layer = (options: Options): Layer.Layer<Adapter> => Layer.scoped(Adapter, make(options))
