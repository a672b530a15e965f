/** Makes a self-signed certificate at run time, so that no key stands in the repository. */
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto"

export interface Certificate {
  readonly key: string
  readonly cert: string
}

const tlv = (tag: number, ...parts: ReadonlyArray<Buffer>): Buffer => {
  const body = Buffer.concat(parts)
  if (body.length < 0x80) return Buffer.concat([Buffer.from([tag, body.length]), body])
  const size: Array<number> = []
  for (let rest = body.length; rest > 0; rest >>= 8) size.unshift(rest & 0xff)
  return Buffer.concat([Buffer.from([tag, 0x80 | size.length, ...size]), body])
}

const sequence = (...parts: ReadonlyArray<Buffer>) => tlv(0x30, ...parts)
const set = (...parts: ReadonlyArray<Buffer>) => tlv(0x31, ...parts)
const integer = (bytes: Buffer) => tlv(0x02, bytes)
const bits = (bytes: Buffer) => tlv(0x03, Buffer.from([0]), bytes)
const octets = (bytes: Buffer) => tlv(0x04, bytes)
const text = (value: string) => tlv(0x0c, Buffer.from(value))
const time = (date: Date) =>
  tlv(0x17, Buffer.from(`${date.toISOString().slice(2, 19).replaceAll(/[-T:]/g, "")}Z`))

const oid = (dotted: string): Buffer => {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number)
  const bytes = [first * 40 + second]
  for (const part of rest) {
    const groups = [part & 0x7f]
    for (let more = part >> 7; more > 0; more >>= 7) groups.unshift((more & 0x7f) | 0x80)
    bytes.push(...groups)
  }
  return tlv(0x06, Buffer.from(bytes))
}

const ecdsaSha256 = sequence(oid("1.2.840.10045.4.3.2"))

/** `names` and `addresses` (IPv4) are what the certificate is good for. */
export const selfSigned = (
  names: ReadonlyArray<string>,
  addresses: ReadonlyArray<string> = []
): Certificate => {
  const pair: { privateKey: KeyObject; publicKey: KeyObject } = generateKeyPairSync("ec", {
    namedCurve: "prime256v1"
  })
  const name = sequence(set(sequence(oid("2.5.4.3"), text(names[0] ?? addresses[0] ?? "test"))))
  const subjects = sequence(
    ...names.map((one) => tlv(0x82, Buffer.from(one))),
    ...addresses.map((one) => tlv(0x87, Buffer.from(one.split(".").map(Number))))
  )
  const extensions = sequence(
    sequence(oid("2.5.29.17"), octets(subjects)),
    sequence(
      oid("2.5.29.19"),
      tlv(0x01, Buffer.from([0xff])),
      octets(sequence(tlv(0x01, Buffer.from([0xff]))))
    )
  )
  const day = 86_400_000
  const body = sequence(
    tlv(0xa0, integer(Buffer.from([2]))),
    integer(Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ecdsaSha256,
    name,
    sequence(time(new Date(Date.now() - day)), time(new Date(Date.now() + 30 * day))),
    name,
    pair.publicKey.export({ type: "spki", format: "der" }),
    tlv(0xa3, extensions)
  )
  const der = sequence(body, ecdsaSha256, bits(sign("sha256", body, pair.privateKey)))
  const lines = der.toString("base64").match(/.{1,64}/g) ?? []
  return {
    key: pair.privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`
  }
}
