import type { Lengths, CutPoint, ProxySide, CutStatement } from './cutting-proxy.ts'

/** Share of the cuts made in COMMIT, the statements sent with it and their answers, where everything that matters happens. */
const AT_COMMIT = 0.25

/**
 * Returns `count` points at which to cut a transaction of the given lengths: spread over it as evenly as possible, with
 * a quarter of them in its COMMIT, half of these in the answer. Other seeds give the points in between.
 */
export function cutPointsIn(
  lengths: Readonly<Record<CutStatement, Lengths>>,
  count: number,
  seed: number,
): CutPoint[] {
  const atCommit = Math.ceil(count * AT_COMMIT)
  const last = everyPoint('COMMIT', lengths.COMMIT)
  const [asked, answered] = SIDES.map((side) => last.filter((it) => it.side === side))
  return [
    ...spread(everyPoint('BEGIN', lengths.BEGIN), count - atCommit, seed),
    ...spread(asked!, Math.ceil(atCommit / 2), seed),
    ...spread(answered!, Math.floor(atCommit / 2), seed),
  ]
}

const SIDES: readonly ProxySide[] = ['asked', 'answered']

/** Before the first byte, after each, and after the last. */
function everyPoint(from: CutStatement, lengths: Lengths): Omit<CutPoint, 'reset'>[] {
  return SIDES.flatMap((side) =>
    Array.from({ length: lengths[side] + 1 }, (_, bytes) => ({ side, from, bytes })),
  )
}

function spread(
  points: readonly Omit<CutPoint, 'reset'>[],
  count: number,
  seed: number,
): CutPoint[] {
  const first = seed % points.length
  return Array.from({ length: count }, (_, n) => {
    const at = first + Math.floor((n * points.length) / count)
    return { ...points[at % points.length]!, reset: (n + seed) % 2 === 0 }
  })
}
