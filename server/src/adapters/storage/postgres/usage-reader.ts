import { NIL_ID } from '../../../base/id.ts'
import type { TokenReader } from '../../../ports/store.ts'
import type { AskPostgres } from './session.ts'
import { unpackText } from './text.ts'
import { VISIBLE } from './visibility.ts'

const DAY_MS = 24 * 60 * 60 * 1000

/** Returns a function that counts tokens from stored sums, less the tokens that expired and are not swept yet. */
export function usageReader(ask: AskPostgres): TokenReader['usage'] {
  return async (tenantId, { now, since }) => {
    const active = 'greatest(created_at, coalesce(modified_at, 0)) >= $3'
    const rows = await ask(
      `SELECT type, sums.count - coalesce(gone.count, 0) AS count,
         sums.active - coalesce(gone.active, 0) AS active, last_created_at
       FROM (SELECT type, sum(count)::bigint AS count, max(last_created_at) AS last_created_at,
           (coalesce(sum(count) FILTER (WHERE day >= $4), 0))::bigint AS active
         FROM token_counts WHERE tenant = $1 AND made_in = $5 GROUP BY type) AS sums
       LEFT JOIN (SELECT type, count(*) AS count, count(*) FILTER (WHERE ${active}) AS active
         FROM tokens WHERE tenant = $1 AND expires_at <= $2 AND ${VISIBLE}
         GROUP BY type) AS gone USING (type)`,
      [tenantId, now, since, Math.ceil(since / DAY_MS), NIL_ID],
    )
    return rows
      .map(({ type, count, active: recent, last_created_at: lastCreatedAt }) => ({
        type: unpackText(String(type)),
        count: Number(count),
        active: Number(recent),
        lastCreatedAt: Number(lastCreatedAt),
      }))
      .filter((it) => it.count > 0)
      .toSorted((a, b) => (a.type < b.type ? -1 : 1))
  }
}
