import type { Change } from '../../src/ports/change.ts'

/** Returns the kind of a change, with its entity if it is of one: `insert application`. */
export function changeName(change: Change): string {
  return 'entity' in change ? `${change.kind} ${change.entity}` : change.kind
}
