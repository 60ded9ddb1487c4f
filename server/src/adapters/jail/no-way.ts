import { EgressRefusal } from '../../ports/egress.ts'
import type { WaysOut } from './broker.ts'

/** Refuses every connection, for guests that need none. */
export const NO_WAY: WaysOut = {
  toHost: () => Promise.reject(new EgressRefusal('unlisted')),
  toService: () => Promise.reject(new EgressRefusal('unlisted')),
}
