import {
  EMPTY_TIP,
  isSameTip,
  rememberedTip,
  type RememberedTip,
} from '../../../ports/remembered-tip.ts'
import { rowsFrom, columnsOf } from './several-rows.ts'
import type { PostgresRow } from './rows.ts'
import { kept, type AskPostgres } from './session.ts'
import type { RememberedTips } from './tip-memory.ts'

/** How a remembered tip compares with the audit log in the database. */
export interface TipComparison {
  /** `kept` also if retention removed the event since; `absent` if there is no such tenant: it was deleted. */
  readonly found: 'kept' | 'lost' | 'absent'
  /** The last event that the database has. */
  readonly tip: RememberedTip
}

const SEEN = { tenant: 'uuid', number: 'bigint' } as const

/** Looks rows up one by one, as find-tokens does. All come from one moment, so that no event is removed between two looks. */
const COMPARE = kept(
  'compare-chain-tips',
  `SELECT seen.tenant, heads.number, heads.hash, heads.removed_number, heads.removed_hash, event.hash AS seen_hash
    FROM ${rowsFrom(SEEN, 'seen')}
    CROSS JOIN LATERAL (SELECT 1 FROM tenants WHERE tenants.id = seen.tenant LIMIT 1) AS present
    LEFT JOIN LATERAL (SELECT number, hash, removed_number, removed_hash FROM tenant_heads
      WHERE tenant_heads.tenant = seen.tenant LIMIT 1) AS heads ON true
    LEFT JOIN LATERAL (SELECT hash FROM record
      WHERE record.tenant = seen.tenant AND record.number = seen.number LIMIT 1) AS event ON true`,
)

/**
 * Compares remembered tips with the database, in one statement.
 *
 * Each must have been remembered before the call: then only a database that was put back does not have it.
 */
export async function compareTips(
  ask: AskPostgres,
  seen: RememberedTips,
): Promise<ReadonlyMap<string, TipComparison>> {
  const rows = Array.from(seen, ([tenant, { number }]) => [tenant, number])
  const found = await ask(COMPARE, columnsOf(SEEN, rows))
  const byTenant = new Map(found.map((it) => [String(it.tenant), it]))
  return new Map(Array.from(seen, ([id, tip]) => [id, comparisonOf(tip, byTenant.get(id))]))
}

function comparisonOf(seen: RememberedTip, row: PostgresRow | undefined): TipComparison {
  if (row === undefined) return { found: 'absent', tip: EMPTY_TIP }
  const tip = row.number === null ? EMPTY_TIP : tipOf(row.number, row.hash)
  // There is no event to lose.
  if (seen.number === 0) return { found: 'kept', tip }
  if (row.number === null) return { found: 'lost', tip }
  const removed = Number(row.removed_number)
  if (seen.number < removed) return { found: 'kept', tip }
  const hash = seen.number === removed ? row.removed_hash : row.seen_hash
  const isThere = hash instanceof Uint8Array && isSameTip(tipOf(seen.number, hash), seen)
  const isEnd = seen.number !== tip.number || isSameTip(tip, seen)
  const kept = seen.number <= tip.number && isThere && isEnd
  return { found: kept ? 'kept' : 'lost', tip }
}

/** Returns the tip in these columns. */
export function tipOf(number: unknown, hash: unknown): RememberedTip {
  return rememberedTip({ number: Number(number), hash: hash as Uint8Array })
}
