import { ENVELOPE_BYTES_AT_ONCE } from '../../../src/base/limits.ts'
import { takeWithin } from '../../../src/base/take-within.ts'
import type { RenewedEnvelope } from '../../../src/ports/change.ts'
import type { Envelopes, EnvelopeStretch } from '../../../src/ports/store.ts'
import { ENVELOPE_TABLES } from '../../../src/ports/store/entities.ts'
import type { StoredEnvelope, StoredToken } from '../../../src/ports/stored.ts'
import { compare } from './memory-table.ts'

/** An envelope, and how to replace it. */
export interface MemoryEnvelope extends StoredEnvelope {
  readonly renew: (envelope: Uint8Array) => void
}

/** Returns the envelopes of a token's data and of its security code. */
export function tokenEnvelopes(
  table: 'tokens' | 'pending',
  token: StoredToken,
  put: (renewed: StoredToken) => void,
): MemoryEnvelope[] {
  const { id, internalId: row, type, containers, data, cvc } = token
  const bound = { table, row, id, type, containers }
  const whole: MemoryEnvelope = {
    ...bound,
    part: 'data',
    envelope: data,
    renew: (renewed) => put({ ...token, data: renewed }),
  }
  if (cvc === null) return [whole]
  const apart: MemoryEnvelope = {
    ...bound,
    part: 'cvc',
    envelope: cvc.envelope,
    renew: (envelope) => put({ ...token, cvc: { ...cvc, envelope } }),
  }
  return [whole, apart]
}

/** Works as TenantReader.envelopes: a chunk ends with its table. */
export function envelopesIn(
  all: readonly MemoryEnvelope[],
  { dataKeyId, after, limit }: EnvelopeStretch,
): Envelopes {
  const table = after?.table ?? ENVELOPE_TABLES[0]
  const own = all.filter((it) => it.table === table && it.row > (after?.row ?? ''))
  const rows = [...new Set(own.map((it) => it.row))].toSorted(compare)
  const bytesIn = (row: string): number =>
    own.reduce((sum, it) => (it.row === row ? sum + it.envelope.length : sum), 0)
  const { taken: looked } = takeWithin(rows.slice(0, limit), bytesIn, ENVELOPE_BYTES_AT_ONCE)
  const found = own
    .filter((it) => looked.includes(it.row))
    .filter((it) => Buffer.compare(it.envelope.subarray(0, dataKeyId.length), dataKeyId) !== 0)
    .map(({ renew: _renew, ...it }) => it)
  const following = ENVELOPE_TABLES[ENVELOPE_TABLES.indexOf(table) + 1]
  const end = following === undefined ? null : { table: following, row: '' }
  const next = rows.length > looked.length ? { table, row: looked.at(-1)! } : end
  return { found, looked: looked.length, next }
}

/** Replaces envelopes that are still the ones that were read. */
export function renewIn(
  all: () => readonly MemoryEnvelope[],
  envelopes: readonly RenewedEnvelope[],
): void {
  for (const { table, row, part, envelope, renewed } of envelopes) {
    // Searches again each time: the previous renewal may have replaced the same row.
    const at = all().find((it) => it.table === table && it.row === row && it.part === part)
    if (at !== undefined && Buffer.compare(at.envelope, envelope) === 0) at.renew(renewed)
  }
}
