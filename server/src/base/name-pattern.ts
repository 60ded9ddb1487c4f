import { foldCase } from './fold-case.ts'

/**
 * Returns whether a name is among those that `pattern` looks for, whatever its case: with `*` for any characters
 * and `?` for one where there are some, else as a part of the name.
 *
 * Source: interface.md, Lists. Takes time for each character of the name by each of the pattern, and no more.
 */
export function namePattern(pattern: string): (name: string) => boolean {
  const folded = foldCase(pattern)
  if (!/[*?]/.test(folded)) return (name) => foldCase(name).includes(folded)
  const wanted = [...folded]
  return (name) => matches(wanted, [...foldCase(name)])
}

/** Goes back to the last star only: what an earlier one might have taken, the later one can take as well. */
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
