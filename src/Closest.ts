/** The names nearest to one that does not exist, for hints. */
import { distance } from "fastest-levenshtein"

/** How much further than the nearest a name may be and still be meant. */
const slack = 2

/** At most `limit` of `names`, the nearest first; none that shares too little with `name`. */
export const closest = (name: string, names: Iterable<string>, limit = 3): ReadonlyArray<string> => {
  const wanted = name.toLowerCase()
  const bound = Math.max(1, Math.floor(wanted.length / 2))
  const costOf = (lower: string): number => {
    if (wanted.length > 2 && lower.length > 2 && (lower.includes(wanted) || wanted.includes(lower)))
      return lower === wanted ? 0 : 1
    // Names whose lengths differ by more are further apart, and need not be compared: they may be endless.
    return Math.abs(lower.length - wanted.length) > bound ? Number.POSITIVE_INFINITY : distance(wanted, lower)
  }
  const near = [...names]
    .map((candidate) => ({ candidate, cost: costOf(candidate.toLowerCase()) }))
    .filter(({ cost }) => cost <= bound)
    .sort((a, b) => a.cost - b.cost || (a.candidate < b.candidate ? -1 : 1))
  const least = near[0]?.cost ?? 0
  return near
    .filter(({ cost }) => cost <= least + slack)
    .slice(0, limit)
    .map(({ candidate }) => candidate)
}
