/**
 * Whose connection a driver's socket handler belongs to. Drivers throw from such handlers, where no call can catch it;
 * the asynchronous context that a connection was made in tells which source it was.
 */
import { AsyncLocalStorage } from "node:async_hooks"
import * as Context from "effect/Context"

/** Stands for whoever made an adapter; compared by identity. */
export interface OwnerToken {
  /** For a person who debugs. */
  readonly source: string | undefined
}

/** Read by an adapter's `make`. Without one, faults of its handlers belong to nobody. */
export class Owner extends Context.Reference<Owner>()("mcp-query/Owner", {
  defaultValue: (): OwnerToken => ({ source: undefined })
}) {}

const owners = new AsyncLocalStorage<OwnerToken>()

/** Runs what makes a connection, so that its handlers are known to belong to `owner`. */
export const connectAs = <A>(owner: OwnerToken, connect: () => A): A => owners.run(owner, connect)

/** The owner of the handler that is running, say in a listener of `uncaughtException`. */
export const currentOwner = (): OwnerToken | undefined => owners.getStore()
