/** The tools of a server, in the order in which clients see them. */
import * as Hint from "./Hint.js"
import type { SourcesService } from "./Sources.js"
import * as Explain from "./Tool/Explain.js"
import * as Query from "./Tool/Query.js"
import * as Schema from "./Tool/Schema.js"
import type { Tool } from "./Tool.js"

export const make = (sources: SourcesService): ReadonlyArray<Tool> => {
  const hints = Hint.make()
  return [Query.make(sources, hints), Schema.make(sources), Explain.make(sources, hints)]
}
