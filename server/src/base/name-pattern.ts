import { foldCase } from './fold-case.ts'

/**
 * Returns a function that matches names against `pattern`, ignoring case: `*` stands for any characters and `?` for one; without
 * either, the pattern matches any part of the name.
 *
 * Source: interface.md, Lists. Takes at most time proportional to the length of the name times that of the pattern.
 */
export function namePattern(pattern: string): (name: string) => boolean {
  const folded = foldCase(pattern)
  if (!/[*?]/.test(folded)) return (name) => foldCase(name).includes(folded)
  const wanted = [...folded]
  return (name) => matches(wanted, [...foldCase(name)])
}

/** Backtracks to the last star only: whatever an earlier one could match, the later one can match as well. */
function matches(wanted: readonly string[], name: readonly string[]): boolean {
  let [at, n] = [0, 0]
  let [star, taken] = [-1, 0]
  while (n < name.length) {
    if (wanted[at] === '*') {
      star = at++
      taken = n
    } else if (wanted[at] === '?' || wanted[at] === name[n]) {
      at++
      n++
    } else if (star >= 0) {
      at = star + 1
      n = ++taken
    } else return false
  }
  return wanted.slice(at).every((it) => it === '*')
}
