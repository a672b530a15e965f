/** SQL Server, and what speaks its protocol and dialect. The driver is loaded when an adapter is made, not when this module is. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Scope } from "effect/Scope"
import { Adapter, type AdapterService, guarded } from "../Adapter.js"
import { Config } from "./SqlServer/Config.js"
import * as Telemetry from "./Telemetry.js"

export { Config, configFromUrl } from "./SqlServer/Config.js"

/** The fields of {@link Config}; those that have a default may be left out. */
export type Options = ConstructorParameters<typeof Config>[0]

const databaseOf = ({ database, host, instance, port }: Config): Telemetry.Database => ({
  system: "microsoft.sql_server",
  namespace:
    database === undefined || instance === undefined ? (database ?? instance) : `${instance}|${database}`,
  address: host,
  port
})

/**
 * An adapter for one database. Its connections are made by the calls that need them and end with the scope. The login
 * should be one that may only read (see `report`): the dialect has no read-only session. `options` may come from
 * {@link configFromUrl}; one that does not fit {@link Config} throws a `ParseError`.
 */
export const make = (options: Options): Effect.Effect<AdapterService, never, Scope> => {
  const config = Config.make(options)
  return Effect.promise(() => import("./SqlServer/Service.js")).pipe(
    Effect.flatMap(({ make }) => make(config)),
    Effect.map((service) => Telemetry.traced(databaseOf(config), guarded(service)))
  )
}

/** The same as a Layer. */
export const layer = (options: Options): Layer.Layer<Adapter> => Layer.scoped(Adapter, make(options))
