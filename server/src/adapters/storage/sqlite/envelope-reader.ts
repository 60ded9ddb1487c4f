import type { DatabaseSync } from 'node:sqlite'
import { ENVELOPE_BYTES_AT_ONCE } from '../../../base/limits.ts'
import { takeWithin } from '../../../base/take-within.ts'
import type { TenantReader } from '../../../ports/store.ts'
import type { StoredEnvelope } from '../../../ports/stored.ts'
import { SEALED, lookFor } from './envelope-columns.ts'
import { packId, unpackId } from './ids.ts'
import type { SqliteRow } from './rows.ts'
import { unpackContainers } from '../../../ports/packed-token.ts'

/** Reads the envelopes of a tenant, table by table, each in the order of its key. */
export function envelopeReader(db: DatabaseSync): TenantReader['envelopes'] {
  const looks = SEALED.map((it) => ({ ...it, look: db.prepare(lookFor(it)) }))

  return async (tenantId, { dataKeyId, after, limit }) => {
    const at = after === null ? 0 : SEALED.findIndex((it) => it.table === after.table)
    const { table, columns, look } = looks[at]!
    const from = after === null || after.row === '' ? '' : packId(after.row)
    const source = look.iterate(packId(tenantId), from, limit, dataKeyId)
    const { taken: rows, isCut } = takeWithin(
      source,
      (row) => Number(row['bytes']),
      ENVELOPE_BYTES_AT_ONCE,
    )
    const found = rows.flatMap((row) =>
      Object.entries(columns).flatMap(([column, part]): StoredEnvelope[] => {
        const envelope = row[column]
        if (!(envelope instanceof Uint8Array)) return []
        return [{ table, row: unpackId(row['row']), part, ...contextIn(row), envelope }]
      }),
    )
    const last = rows.at(-1)
    if (last !== undefined && (isCut || rows.length === limit)) {
      return { found, looked: rows.length, next: { table, row: unpackId(last['row']) } }
    }
    const following = SEALED[at + 1]
    const next = following === undefined ? null : { table: following.table, row: '' }
    return { found, looked: rows.length, next }
  }
}

function contextIn({
  id,
  type,
  containers,
}: SqliteRow): Pick<StoredEnvelope, 'id' | 'type' | 'containers'> {
  return {
    id: unpackId(id),
    type: String(type),
    containers: unpackContainers(String(containers)),
  }
}
