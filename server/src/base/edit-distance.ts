/**
 * Returns the number of characters to insert, delete, replace or swap with their neighbour to turn `a` into `b`.
 *
 * Optimal string alignment: no part is edited twice. Source: Damerau, "A technique for computer detection and correction of
 * spelling errors", 1964.
 */
export function editDistance(a: string, b: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = last[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      row[j] = Math.min(last[j]! + 1, row[j - 1]! + 1, replaced)
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      if (swapped) row[j] = Math.min(row[j]!, beforeLast[j - 2]! + 1)
    }
    beforeLast = last
    last = row
  }
  return last[b.length]!
}

/** Returns the `words` nearest to `word`, if they are at most EDITS_MAX edits away. */
export function nearestOf(word: string, words: readonly string[]): string[] {
  let nearest: string[] = []
  let least: number = EDITS_MAX
  for (const it of words) {
    const distance = editDistance(word, it)
    if (distance > least) continue
    nearest = distance < least ? [it] : [...nearest, it]
    least = distance
  }
  return nearest
}

/** A larger limit would confuse short names with each other. Ours. */
const EDITS_MAX = 2
