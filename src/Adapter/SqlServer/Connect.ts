/** Opens connections: the configuration as the driver wants it, and the one place that waits for a login. */
import { readFile } from "node:fs/promises"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Redacted from "effect/Redacted"
import type { ConnectionConfiguration } from "tedious"
import type { ConnectionFailed } from "../../QueryError.js"
import { awaitDriver, type OwnerToken } from "../Owner.js"
import { authenticationOf, type Config } from "./Config.js"
import { connectFailure, type EngineError } from "./Failure.js"
import { Wire } from "./Wire.js"

type Authentication = NonNullable<ConnectionConfiguration["authentication"]>

const plain = (secret: Redacted.Redacted | undefined) =>
  secret === undefined ? undefined : Redacted.value(secret)

const authentication = (config: Config): Authentication => {
  const { clientId, domain, tenantId, user: userName } = config
  const password = plain(config.password)
  switch (authenticationOf(config)) {
    case "sql":
      return { type: "default", options: { userName, password } }
    case "ntlm":
      return { type: "ntlm", options: { userName, password, domain } }
    case "azure-password":
      return { type: "azure-active-directory-password", options: { userName, password, clientId, tenantId } }
    case "azure-service-principal":
      return {
        type: "azure-active-directory-service-principal-secret",
        options: { clientId, clientSecret: plain(config.clientSecret), tenantId }
      }
    case "azure-access-token":
      return { type: "azure-active-directory-access-token", options: { token: plain(config.accessToken) } }
    case "azure-managed-identity":
      return { type: "azure-active-directory-msi-vm", options: { clientId } }
    case "azure-default":
      return { type: "azure-active-directory-default", options: { clientId } }
  }
}

const driverConfig = (config: Config, ca: string | undefined): ConnectionConfiguration => ({
  server: config.host,
  authentication: authentication(config),
  options: {
    ...(config.instance === undefined ? { port: config.port ?? 1433 } : { instanceName: config.instance }),
    ...(config.database === undefined ? {} : { database: config.database }),
    ...(config.serverName === undefined ? {} : { serverName: config.serverName }),
    ...(ca === undefined ? {} : { cryptoCredentialsDetails: { ca } }),
    appName: config.applicationName,
    // The login's own language: it says how dates are read.
    language: "",
    connectTimeout: config.connectTimeoutMs,
    // The caller's deadline ends a statement; the driver's stops counting at the first packet.
    requestTimeout: 0,
    cancelTimeout: 5000,
    maxRetriesOnTransientErrors: 0,
    encrypt: config.encrypt,
    trustServerCertificate: config.trustServerCertificate,
    readOnlyIntent: config.readOnlyIntent,
    multiSubnetFailover: config.multiSubnetFailover,
    packetSize: 16_384,
    useColumnNames: false,
    rowCollectionOnDone: false,
    rowCollectionOnRequestCompletion: false
  }
})

const certificates = (config: Config): Effect.Effect<string | undefined, ConnectionFailed> => {
  const { ca } = config
  if (ca === undefined || ca.includes("-----BEGIN")) return Effect.succeed(ca)
  return Effect.tryPromise({
    try: () => readFile(ca, "utf8"),
    catch: (error) =>
      connectFailure(
        Object.assign(new Error("The CA file cannot be read", { cause: error }), { code: "ENOCA" }),
        []
      )
  })
}

const login = (config: ConnectionConfiguration, owner?: OwnerToken): Effect.Effect<Wire, ConnectionFailed> =>
  Effect.suspend(() => {
    let wire: Wire | undefined
    const close = Effect.sync(() => wire?.close())
    return awaitDriver<Wire, ConnectionFailed>((resume) => {
      const said: Array<EngineError> = []
      const made = Either.try({
        try: () => new Wire(config, owner),
        catch: (error) => connectFailure(error, said)
      })
      if (Either.isLeft(made)) return resume(made)
      const { right } = made
      wire = right
      const fail = (error: unknown) => {
        right.close()
        resume(Effect.fail(connectFailure(error, said)))
      }
      right.on("errorMessage", (token) => said.push(token))
      right.on("error", fail)
      right.on("end", () => fail(new Error("The connection was closed")))
      right.on("connect", (error) => {
        right.removeAllListeners("errorMessage")
        right.removeListener("error", fail)
        if (error) fail(error)
        else resume(made)
      })
      right.connect()
      return close
    }).pipe(
      Effect.interruptible,
      // The canceller is not asked where the interruption comes after the answer.
      Effect.onInterrupt(() => close)
    )
  })

/** Connects and logs in. Interruption closes the connection, in a region that is else uninterruptible, too. */
export const connect = (config: Config, owner?: OwnerToken): Effect.Effect<Wire, ConnectionFailed> =>
  Effect.flatMap(certificates(config), (ca) => login(driverConfig(config, ca), owner))
