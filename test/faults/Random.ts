/** Random decisions that a seed repeats. Each part of a campaign has a stream of its own, so that timing moves none. */

export interface Random {
  /** From 0 up to 1. */
  readonly next: () => number
  /** A whole number from `least` to `most`. */
  readonly int: (least: number, most: number) => number
  readonly chance: (probability: number) => boolean
  readonly pick: <A>(items: readonly [A, ...ReadonlyArray<A>]) => A
  /** By weight. */
  readonly weighted: <A>(items: readonly [readonly [number, A], ...ReadonlyArray<readonly [number, A]>]) => A
  /** Another stream, by name. */
  readonly fork: (name: string) => Random
}

const hash = (text: string) => {
  let value = 0x811c9dc5
  for (const character of text) value = Math.imul(value ^ (character.codePointAt(0) ?? 0), 0x01000193)
  return value >>> 0
}

/** Mulberry32. */
export const make = (seed: string): Random => {
  let state = hash(seed)
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const int = (least: number, most: number) => least + Math.floor(next() * (most - least + 1))
  return {
    next,
    int,
    chance: (probability) => next() < probability,
    pick: (items) => items[int(0, items.length - 1)] ?? items[0],
    weighted: (items) => {
      let left = next() * items.reduce((sum, [weight]) => sum + weight, 0)
      for (const [weight, item] of items) {
        left -= weight
        if (left < 0) return item
      }
      return items[0][1]
    },
    fork: (name) => make(`${seed}/${name}`)
  }
}
