/** A line of the server's log. */
export type LogLine = { readonly event: string; readonly level: string; readonly time: string } & Record<
  string,
  unknown
>

/** Cuts chunks of a stream into lines. */
export const lineReader = (line: (text: string) => void) => {
  const decoder = new TextDecoder()
  let rest = ""
  return (chunk: Buffer) => {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split("\n")
    rest = parts.pop() ?? ""
    for (const part of parts) line(part)
  }
}
