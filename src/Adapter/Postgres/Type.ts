/**
 * The types of a source's columns: their names as `format_type(oid, null)` gives them, and what they are made of. The
 * engine's own types have fixed object identifiers; others are looked up once and kept, but for composites, whose fields
 * change with `ALTER TABLE` under the same identifier.
 */
import type { Scalar, Shape } from "./Value.js"

export interface PgType {
  readonly name: string
  readonly shape: Shape
}

const text: Shape = { _tag: "Scalar", scalar: "text" }

/** Identifier, name, the array type's identifier (0: none), and the rule of the value table. Equal in versions 14 to 18. */
const builtin: ReadonlyArray<readonly [number, string, number, Scalar?]> = [
  [16, "boolean", 1000, "boolean"],
  [17, "bytea", 1001, "bytea"],
  [18, '"char"', 1002],
  [19, "name", 1003],
  [20, "bigint", 1016, "integer"],
  [21, "smallint", 1005, "integer"],
  [22, "int2vector", 1006],
  [23, "integer", 1007, "integer"],
  [24, "regproc", 1008],
  [25, "text", 1009],
  [26, "oid", 1028, "integer"],
  [27, "tid", 1010],
  [28, "xid", 1011],
  [29, "cid", 1012],
  [30, "oidvector", 1013],
  [114, "json", 199, "json"],
  [142, "xml", 143],
  [600, "point", 1017],
  [601, "lseg", 1018],
  [602, "path", 1019],
  [603, "box", 1020],
  [604, "polygon", 1027],
  [628, "line", 629],
  [650, "cidr", 651],
  [700, "real", 1021, "float"],
  [701, "double precision", 1022, "float"],
  [705, "unknown", 0],
  [718, "circle", 719],
  [774, "macaddr8", 775],
  [790, "money", 791, "money"],
  [829, "macaddr", 1040],
  [869, "inet", 1041],
  [1033, "aclitem", 1034],
  [1042, "character", 1014],
  [1043, "character varying", 1015],
  [1082, "date", 1182],
  [1083, "time without time zone", 1183],
  [1114, "timestamp without time zone", 1115, "timestamp"],
  [1184, "timestamp with time zone", 1185, "timestamptz"],
  [1186, "interval", 1187],
  [1266, "time with time zone", 1270, "timetz"],
  [1560, "bit", 1561],
  [1562, "bit varying", 1563],
  [1700, "numeric", 1231],
  [1790, "refcursor", 2201],
  [2202, "regprocedure", 2207],
  [2203, "regoper", 2208],
  [2204, "regoperator", 2209],
  [2205, "regclass", 2210],
  [2206, "regtype", 2211],
  [2249, "record", 2287],
  [2275, "cstring", 1263],
  [2277, "anyarray", 0],
  [2278, "void", 0],
  [2950, "uuid", 2951],
  [2970, "txid_snapshot", 2949],
  [3220, "pg_lsn", 3221],
  [3614, "tsvector", 3643],
  [3615, "tsquery", 3645],
  [3642, "gtsvector", 3644],
  [3734, "regconfig", 3735],
  [3769, "regdictionary", 3770],
  [3802, "jsonb", 3807, "json"],
  [4072, "jsonpath", 4073],
  [4089, "regnamespace", 4090],
  [4096, "regrole", 4097],
  [4191, "regcollation", 4192],
  [5038, "pg_snapshot", 5039],
  [5069, "xid8", 271]
]

const timestamptzOid = 1184

/** Ranges and multiranges with their array types. Only those over moments are more than text. */
const builtinRanges: ReadonlyArray<readonly [number, string, number, "Range" | "Multirange", number?]> = [
  [3904, "int4range", 3905, "Range"],
  [3906, "numrange", 3907, "Range"],
  [3908, "tsrange", 3909, "Range"],
  [3910, "tstzrange", 3911, "Range", timestamptzOid],
  [3912, "daterange", 3913, "Range"],
  [3926, "int8range", 3927, "Range"],
  [4451, "int4multirange", 6150, "Multirange"],
  [4532, "nummultirange", 6151, "Multirange"],
  [4533, "tsmultirange", 6152, "Multirange"],
  [4534, "tstzmultirange", 6153, "Multirange", timestamptzOid],
  [4535, "datemultirange", 6155, "Multirange"],
  [4536, "int8multirange", 6157, "Multirange"]
]

/** A row of {@link lookup}; all fields are the engine's text. */
export type CatalogRow = ReadonlyArray<string | null>

/**
 * What the catalog says about the types in `$1`: identifier, name, kind, element and delimiter of an array, base of a
 * domain, subtype of a range or multirange, and the fields of a composite.
 */
export const lookup = `select t.oid, pg_catalog.format_type(t.oid, null), t.typtype,
  e.oid, e.typdelim,
  nullif(t.typbasetype, 0),
  (select r.rngsubtype from pg_catalog.pg_range r where r.rngtypid = t.oid or r.rngmultitypid = t.oid),
  (select pg_catalog.string_agg(a.atttypid::text, ',' order by a.attnum) from pg_catalog.pg_attribute a
    where t.typtype = 'c' and a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped)
from pg_catalog.pg_type t left join pg_catalog.pg_type e on e.oid = t.typelem and e.typarray = t.oid
where t.oid = any ($1::pg_catalog.oid[])`

interface Entry {
  readonly name: string
  readonly kind: string
  readonly element: number | null
  readonly delimiter: string
  readonly base: number | null
  readonly subtype: number | null
  readonly fields: ReadonlyArray<number>
}

const oidOf = (value: string | null | undefined): number | null =>
  value === null || value === undefined ? null : Number(value)

const hasFields = (shape: Shape): boolean => {
  switch (shape._tag) {
    case "Composite":
      return true
    case "Array":
      return hasFields(shape.element)
    case "Range":
    case "Multirange":
      return hasFields(shape.bound)
    default:
      return false
  }
}

/** The known types of one source; of one answer, where it has those of its source as `kept`. */
export class Types {
  readonly #known = new Map<number, PgType>()
  readonly #entries = new Map<number, Entry>()
  readonly #kept: Types | undefined

  constructor(kept?: Types) {
    this.#kept = kept
    if (kept !== undefined) return
    const add = (oid: number, name: string, array: number, shape: Shape, delimiter = ",") => {
      this.#known.set(oid, { name, shape })
      if (array !== 0) {
        this.#known.set(array, { name: `${name}[]`, shape: { _tag: "Array", element: shape, delimiter } })
      }
    }
    // The only type of the engine whose arrays are not separated by commas.
    const box = 603
    for (const [oid, name, array, scalar] of builtin) {
      const shape: Shape = scalar === undefined ? text : { _tag: "Scalar", scalar }
      add(oid, name, array, shape, oid === box ? ";" : ",")
    }
    for (const [oid, name, array, _tag, subtype] of builtinRanges) {
      const bound = subtype === undefined ? text : (this.#known.get(subtype)?.shape ?? text)
      add(oid, name, array, { _tag, bound })
    }
  }

  get(oid: number): PgType | undefined {
    return this.#known.get(oid) ?? this.#kept?.get(oid)
  }

  /** The identifiers among `oids`, and among what those are made of, that {@link lookup} has not yet told. */
  missing(oids: Iterable<number>): ReadonlyArray<number> {
    const wanted = new Set<number>()
    const seen = new Set<number>()
    const visit = (oid: number) => {
      if (this.get(oid) !== undefined || seen.has(oid)) return
      seen.add(oid)
      const entry = this.#entries.get(oid)
      if (entry === undefined) {
        wanted.add(oid)
        return
      }
      for (const part of [entry.element, entry.base, entry.subtype, ...entry.fields]) {
        if (part !== null) visit(part)
      }
    }
    for (const oid of oids) visit(oid)
    return [...wanted]
  }

  /** Takes the answer for `asked`; a type that the catalog does not have (any more) is text without a name. */
  learn(asked: Iterable<number>, rows: Iterable<CatalogRow>): void {
    for (const [oid, name, kind, element, delimiter, base, subtype, fields] of rows) {
      this.#entries.set(Number(oid), {
        name: name ?? "",
        kind: kind ?? "",
        element: oidOf(element),
        delimiter: delimiter ?? ",",
        base: oidOf(base),
        subtype: oidOf(subtype),
        fields: fields ? fields.split(",").map(Number) : []
      })
    }
    for (const oid of asked) {
      if (!this.#entries.has(oid)) {
        this.#entries.set(oid, {
          name: "???",
          kind: "",
          element: null,
          delimiter: ",",
          base: null,
          subtype: null,
          fields: []
        })
      }
    }
  }

  /** Makes known the types of `oids`, whose parts have all been learnt; the source keeps those that stay as they are. */
  settle(oids: Iterable<number>): void {
    for (const oid of oids) {
      this.#resolve(oid, new Set())
      const type = this.#known.get(oid)
      if (this.#kept !== undefined && type !== undefined && !hasFields(type.shape))
        this.#kept.#known.set(oid, type)
    }
  }

  #resolve(oid: number, within: Set<number>): Shape {
    const known = this.get(oid)
    if (known !== undefined) return known.shape
    const entry = this.#entries.get(oid)
    // A table's row type may hold itself, as an array.
    if (entry === undefined || within.has(oid)) return text
    const inside = new Set(within).add(oid)
    const part = (of: number | null) => (of === null ? text : this.#resolve(of, inside))
    const shape: Shape =
      entry.element !== null
        ? { _tag: "Array", element: part(entry.element), delimiter: entry.delimiter }
        : entry.base !== null
          ? part(entry.base)
          : entry.kind === "c"
            ? { _tag: "Composite", fields: entry.fields.map(part) }
            : entry.subtype !== null
              ? { _tag: entry.kind === "m" ? "Multirange" : "Range", bound: part(entry.subtype) }
              : text
    if (within.size === 0) this.#known.set(oid, { name: entry.name, shape })
    return shape
  }
}
