/** What a Schema found wrong, as flat facts: where, what was expected, what came. */
import * as Option from "effect/Option"
import type * as ParseResult from "effect/ParseResult"
import * as AST from "effect/SchemaAST"

export interface SchemaIssue {
  readonly path: ReadonlyArray<PropertyKey>
  readonly kind: "missing" | "unexpected" | "type" | "refinement"
  readonly expected: string
  readonly received: string
  /** What {@link received} describes. */
  readonly actual: unknown
  /** The keys that would have been known in place of an unexpected one. */
  readonly known: ReadonlyArray<string>
}

const clip = (text: string) => (text.length > 60 ? `${text.slice(0, 60)}…` : text)

/** A value's kind, and nothing of the value itself. */
export const describeKind = (value: unknown): string => {
  if (value === undefined) return "nothing"
  if (value === null) return "null"
  if (Array.isArray(value)) return "an array"
  return typeof value === "object" ? "an object" : `a ${typeof value}`
}

/** A value's kind and, where it is short, the value itself; never walks into it. */
export const describeValue = (value: unknown): string => {
  if (Array.isArray(value)) return `an array of ${value.length}`
  switch (typeof value) {
    case "string":
      return value.length > 60
        ? `a string of ${value.length} characters`
        : `the string ${JSON.stringify(value)}`
    case "number":
      return `the number ${value}`
    case "boolean":
      return `${value}`
    default:
      return describeKind(value)
  }
}

const describeType = (ast: AST.AST): string => {
  const described = AST.getDescriptionAnnotation(ast)
  const standard = ["a string", "a number", "a boolean", "an object in the JavaScript sense"]
  if (Option.isSome(described) && !standard.includes(described.value)) return described.value
  switch (ast._tag) {
    case "StringKeyword":
      return "a string"
    case "NumberKeyword":
      return "a number"
    case "BooleanKeyword":
      return "a boolean"
    case "TupleType":
      return "an array"
    case "TypeLiteral":
      return "an object"
    case "Literal":
      return JSON.stringify(ast.literal)
    case "Refinement":
      return describeType(ast.from)
    case "Transformation":
      return describeType(ast.from)
    case "Suspend":
      return describeType(ast.f())
    case "UndefinedKeyword":
      return "nothing"
    case "Union":
      return [...new Set(ast.types.filter((type) => !AST.isUndefinedKeyword(type)).map(describeType))].join(
        " or "
      )
    default:
      return clip(String(ast))
  }
}

/** Whether `ast` can describe only values of another JavaScript type than `value`. */
const wrongType = (ast: AST.AST, value: unknown): boolean => {
  switch (ast._tag) {
    case "Union":
      return ast.types.every((type) => wrongType(type, value))
    case "Literal":
      return ast.literal === null ? value !== null : typeof ast.literal !== typeof value
    default:
      return true
  }
}

const knownKeys = (ast: AST.AST): ReadonlyArray<string> => {
  switch (ast._tag) {
    case "TypeLiteral":
      return [
        ...ast.propertySignatures.map(({ name }) => String(name)),
        ...ast.indexSignatures.map(({ parameter }) => describeType(parameter))
      ]
    case "Transformation":
    case "Refinement":
      return knownKeys(ast.from)
    default:
      return []
  }
}

/** All facts of a failed decoding, in the order of the schema. */
export const schemaIssues = (issue: ParseResult.ParseIssue): ReadonlyArray<SchemaIssue> => walk(issue, [], [])

const came = (actual: unknown) => ({ actual, received: describeValue(actual) })

const walk = (
  issue: ParseResult.ParseIssue,
  path: ReadonlyArray<PropertyKey>,
  known: ReadonlyArray<string>
): ReadonlyArray<SchemaIssue> => {
  switch (issue._tag) {
    case "Pointer":
      return walk(issue.issue, [...path, ...[issue.path].flat()], known)
    case "Missing":
      return [{ path, kind: "missing", expected: describeType(issue.ast.type), ...came(undefined), known }]
    case "Unexpected":
      return [{ path, kind: "unexpected", expected: known.join(", "), ...came(issue.actual), known }]
    case "Type":
    case "Forbidden":
      return [
        {
          path,
          kind: issue._tag === "Type" && !wrongType(issue.ast, issue.actual) ? "refinement" : "type",
          expected: describeType(issue.ast),
          ...came(issue.actual),
          known
        }
      ]
    case "Refinement":
      return issue.kind === "From"
        ? walk(issue.issue, path, known)
        : [
            {
              path,
              kind: "refinement",
              expected: describeType(issue.ast),
              ...came(issue.actual),
              known
            }
          ]
    case "Transformation":
      return walk(issue.issue, path, known)
    case "Composite": {
      if (issue.ast._tag === "Union") return ofUnion(issue, issue.ast, path, known)
      const keys = knownKeys(issue.ast)
      return [issue.issues].flat().flatMap((inner) => walk(inner, path, keys.length > 0 ? keys : known))
    }
  }
}

/** Of a union, the member that the value was meant for says what is wrong; where there is none, the union itself. */
const ofUnion = (
  issue: ParseResult.Composite,
  ast: AST.Union,
  path: ReadonlyArray<PropertyKey>,
  known: ReadonlyArray<string>
): ReadonlyArray<SchemaIssue> => {
  // A literal that the value does not equal says nothing of which one was meant.
  const inner = [issue.issues]
    .flat()
    .filter((member) => member._tag !== "Type")
    .map((member) => walk(member, path, known))
  const [meant] = inner
    .filter((facts) => facts.some((fact) => fact.path.length > path.length || fact.kind === "refinement"))
    .sort((a, b) => a.length - b.length)
  return (
    meant ?? [
      {
        path,
        kind: wrongType(ast, issue.actual) ? "type" : "refinement",
        expected: describeType(ast),
        ...came(issue.actual),
        known
      }
    ]
  )
}

/** `a.b[0]` */
export const formatPath = (path: ReadonlyArray<PropertyKey>): string =>
  path.reduce<string>(
    (text, key) =>
      typeof key === "number" ? `${text}[${key}]` : text === "" ? String(key) : `${text}.${String(key)}`,
    ""
  )
