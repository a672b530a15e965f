/** What a server's answer to PRELOGIN says (MS-TDS 2.2.6.5). */

export interface PreloginAnswer {
  /** Whether the server goes on encrypted when the client asks for it. */
  readonly encrypts: boolean
  readonly fedAuthRequired: boolean
}

const encryption = 1
const fedAuth = 6
const terminator = 0xff
/** ENCRYPT_ON and ENCRYPT_REQ; the others are ENCRYPT_OFF and ENCRYPT_NOT_SUP. */
const encrypting: ReadonlySet<number> = new Set([1, 3])

/** Throws where the bytes are no such answer. */
export const readPrelogin = (bytes: Buffer): PreloginAnswer => {
  const options = new Map<number, Buffer>()
  for (let at = 0; ; at += 5) {
    const token = bytes.readUInt8(at)
    if (token === terminator) break
    const offset = bytes.readUInt16BE(at + 1)
    const length = bytes.readUInt16BE(at + 3)
    if (offset + length > bytes.length)
      throw new RangeError("An option of PRELOGIN lies outside of the answer")
    options.set(token, bytes.subarray(offset, offset + length))
  }
  const level = options.get(encryption)?.[0]
  if (level === undefined) throw new Error("The answer to PRELOGIN says nothing of encryption")
  return { encrypts: encrypting.has(level), fedAuthRequired: options.get(fedAuth)?.[0] === 1 }
}
