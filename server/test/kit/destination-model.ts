/** A model of lists of destinations: the rule written differently, and lists and hosts that often meet. */
import * as fc from './fast-check.ts'

export type DestinationList = readonly string[] | null
export type SentTo = readonly [name: string, port: number]

const label = fc.constantFrom('a', 'b', 'aa')
const name = fc.array(label, { minLength: 1, maxLength: 3 }).map((it) => it.join('.'))
const port = fc.constantFrom('', ':1', ':443')
const entry = fc.tuple(fc.constantFrom('', '*.'), name, port).map((it) => it.join(''))

export const destinationLists: fc.Arbitrary<DestinationList> = fc.option(
  fc.array(entry, { maxLength: 4 }),
)
/** Several of these together still let something pass. */
export const wideDestinationLists: fc.Arbitrary<DestinationList> = fc.option(
  fc.array(entry, { maxLength: 12 }),
  { freq: 2 },
)
export const targets: fc.Arbitrary<SentTo> = fc.tuple(name, fc.constantFrom(1, 2, 443))

/** Whether every list lets the target pass: by the labels of a name, from the end. */
export function passes(lists: readonly DestinationList[], [target, port]: SentTo): boolean {
  return lists.every((list) => {
    if (list === null) return true
    return list.some((it) => {
      const [host, listed] = it.split(':') as [string, string?]
      if (listed !== undefined && Number(listed) !== port) return false
      const [wanted, actual] = [host.split('.').toReversed(), target.split('.').toReversed()]
      if (wanted.at(-1) !== '*') return wanted.join() === actual.join()
      const below = wanted.slice(0, -1)
      return actual.length > below.length && below.every((it, at) => it === actual[at])
    })
  })
}
