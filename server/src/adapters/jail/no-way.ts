import { EgressRefusal } from '../../ports/egress.ts'
import type { WaysOut } from './broker.ts'

/** No way out at all: for guests that have no business outside. */
export const NO_WAY: WaysOut = {
  toHost: () => Promise.reject(new EgressRefusal('unlisted')),
  toService: () => Promise.reject(new EgressRefusal('unlisted')),
}
