import {
  ENVELOPE_SHELVES,
  type EnvelopeShelf,
  type Envelopes,
  type EnvelopeStretch,
  type StoredEnvelope,
} from '../../world/store.ts'
import { compare } from './shelves.ts'

/** An envelope, and how to put another in its place. */
export interface MemoryEnvelope extends StoredEnvelope {
  readonly renew: (envelope: Uint8Array) => void
}

/** Returns the only envelope of something that is not a token. */
export function wholeEnvelope(
  shelf: EnvelopeShelf,
  id: string,
  envelope: Uint8Array,
  renew: MemoryEnvelope['renew'],
): MemoryEnvelope {
  return { shelf, row: id, part: 'all', id, type: '', containers: [], envelope, renew }
}

/** As TenantReader.envelopes: a stretch ends with its shelf. */
export function envelopesIn(
  all: readonly MemoryEnvelope[],
  { head, after, limit }: EnvelopeStretch,
): Envelopes {
  const shelf = after?.shelf ?? ENVELOPE_SHELVES[0]
  const own = all.filter((it) => it.shelf === shelf && it.row > (after?.row ?? ''))
  const rows = [...new Set(own.map((it) => it.row))].toSorted(compare)
  const looked = rows.slice(0, limit)
  const found = own
    .filter((it) => looked.includes(it.row))
    .filter((it) => Buffer.compare(it.envelope.subarray(0, head.length), head) !== 0)
    .map(({ renew: _renew, ...it }) => it)
  const following = ENVELOPE_SHELVES[ENVELOPE_SHELVES.indexOf(shelf) + 1]
  if (rows.length > limit) return { found, next: { shelf, row: looked.at(-1)! } }
  return { found, next: following === undefined ? null : { shelf: following, row: '' } }
}
