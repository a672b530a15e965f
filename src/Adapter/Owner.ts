/**
 * Whose connection a driver's socket handler belongs to. Drivers throw from such handlers, where no call can catch it;
 * the asynchronous context that a connection was made in tells which source it was.
 */
import { AsyncLocalStorage } from "node:async_hooks"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"

/** Whoever made an adapter. */
export interface OwnerToken {
  /** For a person who debugs. */
  readonly source: string
  /** Hears of a fault in a handler of its connections. */
  readonly crashed: (error: unknown) => void
}

/** Read by an adapter's `make`. Without one, faults of its handlers belong to nobody. */
export class Owner extends Context.Reference<Owner>()("mcp-query/Owner", {
  defaultValue: (): OwnerToken | undefined => undefined
}) {}

const owners = new AsyncLocalStorage<OwnerToken | undefined>()

/** Runs what makes a connection, so that its handlers are known to belong to `owner`. */
export const connectAs = <A>(owner: OwnerToken | undefined, connect: () => A): A => owners.run(owner, connect)

const outside = <A>(run: () => A): A => owners.run(undefined, run)

/**
 * `Effect.async` for what a driver calls back: whoever waits for it goes on outside of the connection's context. Else
 * a throw of theirs, much later, would be taken for the driver's.
 */
export const awaitDriver = <A, E = never>(
  register: (resume: (outcome: Effect.Effect<A, E>) => void) => Effect.Effect<void> | void
): Effect.Effect<A, E> => Effect.async((resume) => register((outcome) => outside(() => resume(outcome))))

/** For a listener of `uncaughtException`: whether a handler of somebody's connection threw. */
export const isOwned = (): boolean => owners.getStore() !== undefined

/** The same, and tells the owner. */
export const blame = (error: unknown): boolean => {
  const owner = owners.getStore()
  if (owner === undefined) return false
  outside(() => owner.crashed(error))
  return true
}
