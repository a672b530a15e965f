/** What the tool `schema` tells, as MCP resources: `mcp-query://SOURCE/schema` and `mcp-query://SOURCE/schema/NAME`. */
import type { Source, SourcesService } from "../Sources.js"

const mimeType = "application/json"

const uriOf = (id: string) => `mcp-query://${encodeURIComponent(id)}/schema`

const tellsSchema = ({ dialect }: Source) => dialect.catalog !== undefined

/** The answer to resources/list: the names of each source. */
export const list = (sources: SourcesService) => ({
  resources: sources.all.filter(tellsSchema).map(({ description, id }) => ({
    uri: uriOf(id),
    name: `${id}/schema`,
    title: `What ${id} has`,
    description: description ?? "All names by kind, as SQL writes them",
    mimeType
  }))
})

/** The answer to resources/templates/list: one object of each source. */
export const templates = (sources: SourcesService) => ({
  resourceTemplates: sources.all.filter(tellsSchema).map(({ id }) => ({
    uriTemplate: `${uriOf(id)}/{name}`,
    name: `${id}/schema/name`,
    title: `A table or view of ${id}`,
    description: "Columns, keys, checks, indexes and definition of one object by its name",
    mimeType
  }))
})

const decoded = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** The arguments of the tool `schema` that a URI stands for; nothing where it is no resource of this server. */
export const argumentsOf = (sources: SourcesService, uri: string): Record<string, string> | undefined => {
  const match = /^mcp-query:\/\/([^/]+)\/schema(?:\/(.+))?$/s.exec(uri)
  const source = decoded(match?.[1] ?? "")
  if (!sources.all.filter(tellsSchema).some(({ id }) => id === source) || source === undefined)
    return undefined
  if (match?.[2] === undefined) return { source, detail: "names" }
  const name = decoded(match[2])
  return name === undefined ? undefined : { source, name, detail: "full" }
}

/** The answer to resources/read. */
export const contents = (uri: string, text: string) => ({ contents: [{ uri, mimeType, text }] })
