import { unpackContainers } from '../../../ports/packed-token.ts'
import type { TenantReader } from '../../../ports/store.ts'
import type { StoredEnvelope } from '../../../ports/stored.ts'
import { SEALED, lookFor } from './envelope-columns.ts'
import type { PostgresRow } from './rows.ts'
import type { AskPostgres } from './session.ts'
import { packText, unpackText } from './text.ts'

/** Reads a tenant's envelopes, table by table, in key order. */
export function envelopeReader(ask: AskPostgres): TenantReader['envelopes'] {
  return async (tenantId, { dataKeyId, after, limit }) => {
    const at = after === null ? 0 : SEALED.findIndex((it) => it.table === after.table)
    const sealed = SEALED[at]!
    const { table } = sealed
    const from = after === null || after.row === '' ? [] : [packText(after.row)]
    const look = lookFor(sealed, from.length > 0)
    const rows = await ask(look, [tenantId, dataKeyId, limit, ...from])
    const found = rows.flatMap((row) =>
      Object.entries(sealed.columns).flatMap(([column, part]): StoredEnvelope[] => {
        const envelope = row[column]
        if (!(envelope instanceof Uint8Array)) return []
        return [{ table, row: unpackText(String(row.row)), part, ...contextIn(row), envelope }]
      }),
    )
    const last = rows.at(-1)
    if (last !== undefined && (last.stretch === limit || rows.length < Number(last.stretch))) {
      return { found, looked: rows.length, next: { table, row: unpackText(String(last.row)) } }
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
}: PostgresRow): Pick<StoredEnvelope, 'id' | 'type' | 'containers'> {
  return {
    id: unpackText(String(id)),
    type: unpackText(String(type)),
    containers: unpackContainers(String(containers)).map(unpackText),
  }
}
