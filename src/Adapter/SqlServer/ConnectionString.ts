/** The forms in which SQL Server clients write a connection: URLs and ADO connection strings → options by name. */

export interface Problem {
  /** The option, or the part of the text. */
  readonly where: string
  readonly expected: string
  readonly found: string
}

export interface Options {
  readonly [option: string]: string | number | boolean
}

export interface Parsed {
  readonly options: Options
  readonly problems: ReadonlyArray<Problem>
}

type Read = (value: string, key: string, into: Collected) => void

class Collected {
  readonly options: Record<string, string | number | boolean> = {}
  readonly problems: Array<Problem> = []

  problem(where: string, expected: string, found: string): void {
    this.problems.push({ where, expected, found })
  }
}

const text =
  (option: string): Read =>
  (value, key, into) => {
    if (value === "") into.problem(key, "a value", "nothing")
    else into.options[option] = value
  }

const yes = new Set(["true", "yes", "1", "on"])
const no = new Set(["false", "no", "0", "off"])

const flag =
  (option: string): Read =>
  (value, key, into) => {
    const word = value.toLowerCase()
    if (yes.has(word) || no.has(word)) into.options[option] = yes.has(word)
    else into.problem(key, "true or false", shown(value))
  }

const seconds =
  (option: string): Read =>
  (value, key, into) => {
    if (/^[0-9]{1,4}$/.test(value) && Number(value) > 0 && Number(value) <= 600)
      into.options[option] = Number(value) * 1000
    else into.problem(key, "seconds, 1 to 600", shown(value))
  }

const milliseconds =
  (option: string): Read =>
  (value, key, into) => {
    if (/^[0-9]{1,6}$/.test(value) && Number(value) > 0 && Number(value) <= 600_000)
      into.options[option] = Number(value)
    else into.problem(key, "milliseconds, 1 to 600000", shown(value))
  }

const port: Read = (value, key, into) => {
  const number = Number(value)
  if (/^[0-9]{1,5}$/.test(value) && number >= 1 && number <= 65_535) into.options["port"] = number
  else into.problem(key, "a port, 1 to 65535", notShown(value))
}

const oneOf =
  (option: string, words: Readonly<Record<string, string | boolean>>): Read =>
  (value, key, into) => {
    const found = words[value.toLowerCase().replaceAll(/[\s_-]/g, "")]
    if (found === undefined) into.problem(key, `one of ${Object.keys(words).join(", ")}`, shown(value))
    else into.options[option] = found
  }

const encrypt = oneOf("encrypt", {
  true: true,
  yes: true,
  mandatory: true,
  strict: "strict",
  false: false,
  no: false,
  optional: false,
  disable: false
})

const authentication = oneOf("authentication", {
  sql: "sql",
  sqlpassword: "sql",
  default: "sql",
  ntlm: "ntlm",
  azurepassword: "azure-password",
  activedirectorypassword: "azure-password",
  azureserviceprincipal: "azure-service-principal",
  activedirectoryserviceprincipal: "azure-service-principal",
  azureaccesstoken: "azure-access-token",
  activedirectoryaccesstoken: "azure-access-token",
  azuremanagedidentity: "azure-managed-identity",
  activedirectorymanagedidentity: "azure-managed-identity",
  activedirectorymsi: "azure-managed-identity",
  azuredefault: "azure-default",
  activedirectorydefault: "azure-default"
})

/** `[tcp:]host[\instance][,port]`, `.` and `(local)` are this machine. */
const server: Read = (value, key, into) => {
  const [, protocol, address = ""] = /^(?:(tcp|np|lpc|admin|via):)?(.*)$/is.exec(value.trim()) ?? []
  if (protocol !== undefined && protocol.toLowerCase() !== "tcp")
    return into.problem(key, "a TCP address (tcp:host,port)", notShown(value))
  if (/^\(localdb\)/i.test(address)) return into.problem(key, "a server reached by TCP", "LocalDB")
  const [place = "", ...ports] = address.split(",")
  const [host = "", ...instance] = place.split("\\")
  if (ports.length > 1 || instance.length > 1 || host === "")
    return into.problem(key, "host\\instance or host,port", notShown(value))
  into.options["host"] = host === "." || host.toLowerCase() === "(local)" ? "localhost" : host
  if (instance[0] !== undefined) text("instance")(instance[0], key, into)
  if (ports[0] !== undefined) port(ports[0].trim(), key, into)
}

/** `DOMAIN\user` is a Windows login. */
const user: Read = (value, key, into) => {
  const [, domain, name] = /^([^\\]+)\\(.+)$/s.exec(value) ?? []
  if (domain !== undefined && name !== undefined) {
    into.options["domain"] = domain
    into.options["user"] = name
  } else text("user")(value, key, into)
}

const integrated: Read = (value, key, into) => {
  if (no.has(value.toLowerCase())) return
  into.problem(key, "NTLM with a domain, user and password; there is no single sign-on here", shown(value))
}

const ignored: Read = () => {}

/** Options by their name without spaces, lower case. */
const readers: Readonly<Record<string, Read>> = {
  server,
  datasource: server,
  address: server,
  addr: server,
  networkaddress: server,
  servername: text("serverName"),
  hostnameincertificate: text("serverName"),
  port,
  portnumber: port,
  instance: text("instance"),
  instancename: text("instance"),
  database: text("database"),
  databasename: text("database"),
  initialcatalog: text("database"),
  user,
  userid: user,
  uid: user,
  username: user,
  password: text("password"),
  pwd: text("password"),
  domain: text("domain"),
  authentication,
  clientid: text("clientId"),
  msiclientid: text("clientId"),
  tenantid: text("tenantId"),
  clientsecret: text("clientSecret"),
  accesstoken: text("accessToken"),
  encrypt,
  trustservercertificate: flag("trustServerCertificate"),
  ca: text("ca"),
  cafile: text("ca"),
  sslrootcert: text("ca"),
  certificate: text("ca"),
  applicationintent: oneOf("readOnlyIntent", { readonly: true, readwrite: false }),
  readonlyintent: flag("readOnlyIntent"),
  multisubnetfailover: flag("multiSubnetFailover"),
  applicationname: text("applicationName"),
  appname: text("applicationName"),
  app: text("applicationName"),
  connecttimeout: seconds("connectTimeoutMs"),
  connectiontimeout: seconds("connectTimeoutMs"),
  timeout: seconds("connectTimeoutMs"),
  logintimeout: seconds("connectTimeoutMs"),
  connecttimeoutms: milliseconds("connectTimeoutMs"),
  locktimeout: milliseconds("lockTimeoutMs"),
  locktimeoutms: milliseconds("lockTimeoutMs"),
  integratedsecurity: integrated,
  trustedconnection: integrated,
  // Known, and of no meaning here.
  commandtimeout: ignored,
  connectretrycount: ignored,
  connectretryinterval: ignored,
  currentlanguage: ignored,
  driver: ignored,
  enlist: ignored,
  loadbalancetimeout: ignored,
  maxpoolsize: ignored,
  minpoolsize: ignored,
  multipleactiveresultsets: ignored,
  packetsize: ignored,
  persistsecurityinfo: ignored,
  pooling: ignored,
  schema: ignored,
  workstationid: ignored,
  wsid: ignored
}

/** What may be repeated of an option's value or name. */
const shown = (value: string) => (value === "" ? "nothing" : JSON.stringify(value.slice(0, 40)))

/** A password with an unescaped `/`, `?` or `@` is read as the parts behind it, so nothing of those is repeated. */
const notShown = (value: string) => (value === "" ? "nothing" : "something else")

const readOption = (key: string, value: string, into: Collected): void => {
  const reader = readers[key.toLowerCase().replaceAll(/[\s_-]/g, "")]
  if (reader === undefined)
    into.problem(
      /^[a-z][a-z0-9 _-]{0,39}$/i.test(key) ? shown(key) : "an option's name",
      "an option of SQL Server connections",
      "an unknown name"
    )
  else reader(value, key, into)
}

/** `key=value;…`; a value may stand in quotes, doubled inside, or in braces. */
const readPairs = (source: string, into: Collected): void => {
  // Nothing here can match in two ways: blanks around a key and a plain value are cut off afterwards.
  const pair =
    /([^=;]+)=\s*(?:"((?:[^"]|"")*)"|'((?:[^']|'')*)'|\{((?:[^}]|\}\})*)\})\s*(?:;|$)|([^=;]+)=([^;]*)(?:;|$)/gy
  for (let at = 0; at < source.length; at = pair.lastIndex) {
    if (/^[\s;]*$/.test(source.slice(at))) return
    pair.lastIndex = at
    const found = pair.exec(source)
    if (found === null) {
      into.problem("the connection string", "key=value pairs with ; between them", "something else")
      return
    }
    const [, quotedKey, double, single, braced, plainKey, plain = ""] = found
    const key = (quotedKey ?? plainKey ?? "").trim()
    const value =
      double?.replaceAll('""', '"') ??
      single?.replaceAll("''", "'") ??
      braced?.replaceAll("}}", "}") ??
      plain.trim()
    readOption(key, value, into)
  }
}

const decode = (part: string, what: string, into: Collected): string => {
  try {
    return decodeURIComponent(part)
  } catch {
    into.problem(what, "percent-encoded text", "a % without two digits")
    return part
  }
}

const readUrl = (rest: string, into: Collected): void => {
  const [, authority = "", path = "", query = "", pairs = ""] =
    /^([^/?;]*)(?:\/([^?;]*))?(?:\?([^;#]*))?(?:[;#](.*))?$/s.exec(rest) ?? []
  const at = authority.lastIndexOf("@")
  if (at >= 0) {
    const [name = "", ...password] = authority.slice(0, at).split(":")
    user(decode(name, "user", into), "user", into)
    if (password.length > 0) text("password")(decode(password.join(":"), "password", into), "password", into)
  }
  const place = authority.slice(at + 1)
  const [, host = "", portText] = /^(\[[^\]]*\]|[^:]*)(?::(.*))?$/s.exec(place) ?? []
  server(decode(host.replace(/^\[(.*)\]$/, "$1"), "host", into), "host", into)
  if (portText !== undefined && portText !== "") port(portText, "port", into)
  for (const part of query.split("&").filter((piece) => piece !== "")) {
    const [key = "", ...value] = part.split("=")
    const name = decode(key, "an option's name", into)
    readOption(name, decode(value.join("=").replaceAll("+", "%20"), name, into), into)
  }
  readPairs(pairs, into)
  const name = decode(path.replace(/\/+$/, ""), "database", into)
  if (name === "") return
  // With the database among the options, the path is the instance, as other clients write it.
  if (into.options["database"] === undefined) into.options["database"] = name
  else if (into.options["instance"] === undefined) into.options["instance"] = name
}

export const connectionOptions = (source: string): Parsed => {
  const into = new Collected()
  const [, rest] = /^(?:jdbc:)?(?:sqlserver|mssql):\/\/(.*)$/is.exec(source.trim()) ?? []
  if (rest === undefined) readPairs(source.trim(), into)
  else readUrl(rest, into)
  if (into.options["host"] === undefined && into.problems.length === 0)
    into.problem("server", "a host", "nothing")
  return into
}
