/**
 * SQL Server's failure table: what the engine and the driver say → the typed failure of a call. Pure, by error number
 * and class; never by the words of a message, which are in the server's language.
 */
import {
  ConnectionFailed,
  type ConnectionReason,
  connectionMessage,
  QueryFailed,
  type QueryReason,
  QueryRejected
} from "../../QueryError.js"

/** An error token of the engine. */
export interface EngineError {
  readonly number: number
  /** Severity: up to 10 is no error, from 20 on the connection is lost. */
  readonly class: number
  readonly message: string
  readonly lineNumber?: number | undefined
}

const table = <A>(rows: ReadonlyArray<readonly [A, ReadonlyArray<number>]>): ReadonlyMap<number, A> =>
  new Map(rows.flatMap(([value, numbers]) => numbers.map((number) => [number, value] as const)))

/** Error numbers of statements. What is not listed is `engine_error`. */
export const queryReasons: ReadonlyMap<number, QueryReason> = table<QueryReason>([
  [
    "syntax",
    [102, 103, 105, 113, 132, 139, 153, 155, 156, 165, 170, 319, 321, 1018, 1031, 1038, 4145, 10321]
  ],
  ["unknown_table", [107, 208, 911, 942, 2702, 2706, 2760, 4701, 7202, 7314, 15009, 15225]],
  ["unknown_column", [207, 1911, 4104]],
  ["unknown_function", [174, 189, 195, 215, 216, 313, 2812, 4121, 6506, 8143, 8144, 8146]],
  ["ambiguous_name", [209, 1011, 1012, 1013, 8156]],
  ["permission_denied", [218, 229, 230, 262, 297, 300, 371, 378, 916, 6004, 15151, 15247, 15517, 33009]],
  [
    "type_mismatch",
    [
      206, 210, 211, 235, 236, 241, 243, 245, 256, 257, 260, 284, 285, 293, 295, 296, 305, 306, 402, 403, 409,
      447, 448, 457, 468, 529, 4147, 5074, 6522, 8114, 8116, 8117, 8133, 8169, 9402, 9413, 9420, 9819, 13609
    ]
  ],
  [
    "out_of_range",
    [
      127, 220, 232, 234, 237, 238, 242, 244, 248, 517, 523, 535, 536, 537, 1014, 1060, 2628, 3606, 3623,
      4191, 8115, 8152, 9803, 9810, 9813, 10742, 10743, 10744
    ]
  ],
  ["division_by_zero", [8134]],
  ["constraint", [515, 547, 2601, 2627]],
  ["parameters", [137, 201, 214, 1087, 8145, 8162, 8178, 8179]],
  ["lock_timeout", [1205, 1222]],
  [
    "resource_limit",
    [
      191, 217, 530, 701, 802, 1101, 1105, 1204, 8618, 8619, 8621, 8622, 8623, 8631, 8632, 8645, 8649, 8651,
      8657, 8658, 9002, 40544, 40549, 40550, 40551, 40552, 40553
    ]
  ]
])

/** Errors by which the engine itself refuses to write. */
export const refusedWrites: ReadonlySet<number> = new Set([3906, 3908, 3924, 10777, 21892])

/**
 * Babelfish's number for every error of the PostgreSQL beneath that it has no number of SQL Server's for. Only then do
 * the words decide, which are PostgreSQL's own.
 */
export const unmappedNumber = 33_557_097

const unmappedReasons: ReadonlyArray<readonly [RegExp, QueryReason]> = [
  [/^syntax error/i, "syntax"],
  [/^(?:relation|table|view|schema|database) .* does not exist|missing FROM-clause entry/i, "unknown_table"],
  [/^column .* does not exist/i, "unknown_column"],
  [/^(?:function|procedure) .* does not exist/i, "unknown_function"],
  [/is ambiguous|specified more than once/i, "ambiguous_name"],
  [/^permission denied|^must be owner|^must have privileges/i, "permission_denied"],
  [
    /^invalid input (?:syntax|value)|^operator does not exist|^cannot cast|cannot be matched|^invalid value/i,
    "type_mismatch"
  ],
  [/out of range|overflow/i, "out_of_range"],
  [/lock timeout|deadlock detected/i, "lock_timeout"],
  [/statement timeout/i, "timeout"],
  [/stack depth limit|out of memory|disk full|too many/i, "resource_limit"]
]

const reasonOf = ({ message, number }: EngineError): QueryReason | undefined =>
  number === unmappedNumber
    ? unmappedReasons.find(([pattern]) => pattern.test(message))?.[1]
    : queryReasons.get(number)

const refusesToWrite = ({ message, number }: EngineError) =>
  refusedWrites.has(number) || (number === unmappedNumber && /read-only transaction/i.test(message))

/** Error numbers of a login; the first that is listed decides, since a general one may follow. */
export const loginReasons: ReadonlyMap<number, ConnectionReason> = table<ConnectionReason>([
  ["database_not_found", [911, 4060, 4064]],
  [
    "authentication",
    [
      916, 4065, 15401, 17828, 17830, 17892, 18450, 18451, 18452, 18456, 18458, 18459, 18460, 18461, 18462,
      18463, 18464, 18465, 18466, 18467, 18468, 18470, 18471, 18486, 18487, 18488, 33134, 33147, 33155, 40607,
      40615
    ]
  ],
  ["too_many_connections", [924, 10928, 10929, 17300, 17809, 40501, 40544, 49918, 49919, 49920]],
  [
    "refused",
    [
      233, 921, 922, 923, 927, 940, 942, 945, 946, 952, 976, 978, 979, 982, 983, 6005, 17142, 17187, 18400,
      40197, 40532, 40613
    ]
  ]
])

/** Codes of Node's sockets and resolver. TLS codes are told by their form. */
export const socketReasons: Readonly<Record<string, ConnectionReason>> = {
  ECONNREFUSED: "refused",
  EHOSTUNREACH: "refused",
  ENETUNREACH: "refused",
  EHOSTDOWN: "refused",
  EACCES: "refused",
  EADDRNOTAVAIL: "refused",
  ETIMEDOUT: "timeout",
  ETIMEOUT: "timeout",
  ENOTFOUND: "dns",
  EAI_AGAIN: "dns",
  EAI_FAIL: "dns",
  EAI_NODATA: "dns",
  EAI_NONAME: "dns",
  ECONNRESET: "closed",
  EPIPE: "closed",
  ECLOSE: "closed",
  ELOGIN: "authentication",
  EFEDAUTH: "authentication",
  EENCRYPT: "tls",
  EPROTO: "tls",
  ENOCA: "tls"
}

const tlsCode =
  /^(?:ERR_(?:TLS|SSL|OSSL)|CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH|INVALID_(?:CA|PURPOSE)|PATH_LENGTH)/

const property = (value: unknown, key: string): unknown =>
  typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined

/** The codes of an error, of those it gathers and of what caused it, the most precise first. */
const codesOf = (error: unknown, depth = 0): ReadonlyArray<string> => {
  if (depth > 4 || typeof error !== "object" || error === null) return []
  const gathered = property(error, "errors")
  const inner = [property(error, "cause"), ...(Array.isArray(gathered) ? gathered : [])].flatMap((one) =>
    codesOf(one, depth + 1)
  )
  const code = property(error, "code")
  return typeof code === "string" ? [...inner, code] : inner
}

/** Why a connection could not be made or was lost, from the driver's error alone. */
export const connectionReason = (error: unknown): ConnectionReason => {
  for (const code of codesOf(error)) {
    const reason = tlsCode.test(code) ? "tls" : socketReasons[code]
    if (reason !== undefined) return reason
  }
  return "closed"
}

const hints: Partial<Record<ConnectionReason, string>> = {
  tls: "Encryption is on unless the source says otherwise: let the server offer TLS with a certificate that is trusted here, name its authority as `ca`, or set trustServerCertificate or encrypt as the network allows.",
  authentication: "Check the source's login and password, and that the login may use the database.",
  database_not_found: "Check the database's name, and that the login may use it."
}

const words = connectionMessage

const connectionFailed = (
  reason: Exclude<ConnectionReason, "file_not_found" | "file_unreadable">,
  cause: unknown,
  more: { readonly code?: number; readonly beforeFirstRow?: boolean } = {}
): ConnectionFailed => {
  const hint = hints[reason]
  return new ConnectionFailed({
    reason,
    message: words[reason],
    ...(hint === undefined ? {} : { hint }),
    ...(more.code === undefined ? {} : { engine: { code: String(more.code) } }),
    ...(more.beforeFirstRow === undefined ? {} : { beforeFirstRow: more.beforeFirstRow }),
    cause
  })
}

const networkReason = (reason: ConnectionReason) =>
  reason === "file_not_found" || reason === "file_unreadable" ? "closed" : reason

/** Babelfish has PostgreSQL's words for it. */
const isFull = (number: number, message: string) =>
  number === unmappedNumber && /too many (?:clients|connections)|connection slots are reserved/i.test(message)

/** A connection that could not be made. `said` are the engine's error tokens in order. */
export const connectFailure = (error: unknown, said: ReadonlyArray<EngineError>): ConnectionFailed => {
  for (const { message, number } of said) {
    const reason = loginReasons.get(number) ?? (isFull(number, message) ? "too_many_connections" : undefined)
    if (reason !== undefined)
      return connectionFailed(networkReason(reason), { error, said }, { code: number })
  }
  const first = said.find((one) => one.class > 10)
  if (first !== undefined) return connectionFailed("refused", { error, said }, { code: first.number })
  return connectionFailed(networkReason(connectionReason(error)), error)
}

/** An established connection that was lost while it was in use. */
export const lostConnection = (cause: unknown, beforeFirstRow: boolean): ConnectionFailed =>
  connectionFailed("closed", cause, { beforeFirstRow })

/** Names in words that could hold the login or a file of the server. */
const ownWords: Readonly<Record<number, string>> = {
  916: "The login may not use that database."
}

/** What this engine's own ways ask for; what holds on any engine is said above the adapters. */
const numberHints: ReadonlyMap<number, string> = new Map([
  [262, "The login needs GRANT SHOWPLAN for plans."],
  [530, "Add OPTION (MAXRECURSION n), n up to 32767, or 0 for no limit."]
])

const queryFailure = (said: EngineError, cause: unknown): QueryFailed | QueryRejected => {
  const engine = {
    code: String(said.number),
    ...(said.lineNumber === undefined || said.lineNumber < 1 ? {} : { line: said.lineNumber })
  }
  const message = (ownWords[said.number] ?? said.message.trim()) || `The engine gave error ${said.number}.`
  if (refusesToWrite(said)) return new QueryRejected({ reason: "read_only", message, engine, cause })
  const reason = reasonOf(said) ?? "engine_error"
  const hint = numberHints.get(said.number)
  return new QueryFailed({ reason, message, ...(hint === undefined ? {} : { hint }), engine, cause })
}

const engineError = (error: unknown): EngineError | undefined => {
  const number = property(error, "number")
  const severity = property(error, "class")
  const message = property(error, "message")
  const line = property(error, "lineNumber")
  return typeof number === "number" && typeof severity === "number" && typeof message === "string"
    ? { number, class: severity, message, lineNumber: typeof line === "number" ? line : undefined }
    : undefined
}

/** Several errors of one statement come gathered, with an empty message. */
const engineErrors = (error: unknown): ReadonlyArray<EngineError> => {
  const gathered = property(error, "errors")
  return (Array.isArray(gathered) ? gathered : [error]).flatMap((one) => engineError(one) ?? [])
}

/** A statement that failed. `rowsSeen`: some of its rows had already arrived. */
export const requestFailure = (
  error: unknown,
  rowsSeen: boolean
): ConnectionFailed | QueryFailed | QueryRejected => {
  const said = engineErrors(error)
  if (said.some((one) => one.class >= 20)) return lostConnection(error, !rowsSeen)
  const first =
    said.find((one) => reasonOf(one) !== undefined) ?? said.find((one) => one.class > 10) ?? said[0]
  if (first !== undefined) return queryFailure(first, error)
  switch (property(error, "code")) {
    case "EPARAM":
      return new QueryFailed({
        reason: "parameters",
        message: "A parameter's value cannot be sent.",
        cause: error
      })
    case "UNKNOWN":
      return new QueryFailed({
        reason: "engine_error",
        message: "The engine reported an error without saying which.",
        cause: error
      })
    default:
      return lostConnection(error, !rowsSeen)
  }
}
