import { NIL_ID, isUuid } from '../../../base/id.ts'
import { INLINE_DATA_BYTES_MAX } from '../../../base/limits.ts'
import type { TokenReader } from '../../../ports/store.ts'
import type { FoundToken } from '../../../ports/stored.ts'
import { pageOf } from './entity-reader.ts'
import { TokenFinder } from './token-finder.ts'
import { tokenOf, type PostgresRow } from './rows.ts'
import type { AskPostgres } from './session.ts'
import { packText, unpackText } from './text.ts'
import { Parameters, inOneOf, selectionOf } from './token-conditions.ts'
import { columnsIf } from './token-content.ts'
import { findDuplicateWithin, findWithin, knownWithin } from './token-reader-within.ts'
import { VISIBLE, livesAt } from './visibility.ts'
import type { DuplicateQuery, TokenQuery } from '../../../ports/token-query.ts'
import { DataCount } from '../../../ports/too-much-data.ts'

/** Selects the columns of a token in `table`, for authorization. */
function columnsOfFound(table: string): string {
  return columnsIf(`octet_length(${table}.data) <= ${INLINE_DATA_BYTES_MAX}`, table)
}

const DAY_MS = 24 * 60 * 60 * 1000

export function tokenReader(ask: AskPostgres): TokenReader {
  const finder = new TokenFinder(ask)

  /** Returns the row of the oldest duplicate, if there is one, as seen from outside transactions. */
  async function findDuplicate(
    tenantId: string,
    { type, fingerprint, containers }: DuplicateQuery,
    now: number,
    columns: string,
  ): Promise<PostgresRow[]> {
    const parameters = new Parameters()
    const conditions = [
      `tenant = ${parameters.add(tenantId, 'uuid')}`,
      `type = ${parameters.add(packText(type), 'text')}`,
      `fingerprint = ${parameters.add(packText(fingerprint), 'text')}`,
      livesAt(parameters.add(now, 'bigint')),
      VISIBLE,
      ...(containers === undefined ? [] : [inOneOf(containers, parameters)]),
    ]
    return await ask(
      `SELECT ${columns} FROM tokens WHERE ${conditions.join(' AND ')}
       ORDER BY serial LIMIT 1`,
      parameters.values,
    )
  }

  return {
    find: async (tenantId, ids, within, bytesMax) => {
      if (within === undefined) return await finder.find(tenantId, ids, bytesMax)
      const found = await findWithin(ask, tenantId, ids, within, bytesMax)
      return new DataCount(bytesMax).gather(found)
    },

    lookUp: async (tenantId, ids, within) =>
      within === undefined
        ? await finder.lookUp(tenantId, ids)
        : await findWithin(ask, tenantId, ids, within, INLINE_DATA_BYTES_MAX),

    known: async (tenantId, ids, within) =>
      within === undefined
        ? await finder.known(tenantId, ids)
        : await knownWithin(ask, tenantId, ids, within),

    findByFingerprint: async (tenantId, type, fingerprint, now, within, containers) => {
      const asked = { type, fingerprint, containers }
      if (within !== undefined) {
        return await findDuplicateWithin(ask, tenantId, asked, now, within)
      }
      const [row] = await findDuplicate(tenantId, asked, now, columnsOfFound('tokens'))
      return row === undefined ? null : tokenOf(row)
    },

    knownByFingerprint: async (tenantId, type, fingerprint, now, within) => {
      const asked = { type, fingerprint }
      if (within !== undefined) {
        return (await findDuplicateWithin(ask, tenantId, asked, now, within))?.internalId ?? null
      }
      const [row] = await findDuplicate(tenantId, asked, now, 'serial')
      return row === undefined ? null : String(row.serial)
    },

    /** Runs one statement, so page and total come from the same snapshot. */
    list: async (tenantId, query, { page, size }) => {
      const parameters = new Parameters()
      parameters.add(tenantId, 'uuid')
      const total = isEverything(query) ? countOfAll(query, parameters) : null
      const { from, where, sortKey } = selectionOf(query, parameters)
      const window = [size, (page - 1) * size].map((it) => parameters.add(it, 'bigint'))
      const rows = await ask(
        `SELECT total, ${columnsOfFound('items')} FROM
           (SELECT ${total ?? `count(*) FROM ${from} WHERE ${where}`}) AS counted (total)
         LEFT JOIN (SELECT tokens.* FROM ${from} WHERE ${where}
           ORDER BY ${sortKey} DESC LIMIT ${window[0]} OFFSET ${window[1]}) AS items ON true
         ORDER BY items.serial DESC`,
        parameters.values,
      )
      const { total: all, items } = pageOf(rows, tokenOf, 'serial')
      return { total: all, items }
    },

    listAfter: async (tenantId, query, { after, size }): Promise<FoundToken[]> => {
      const parameters = new Parameters()
      parameters.add(tenantId, 'uuid')
      const { from, where, sortKey } = selectionOf(query, parameters)
      const newest = after !== null && isUuid(after) ? parameters.add(after, 'uuid') : null
      const rows = await ask(
        `SELECT ${columnsOfFound('items')} FROM (SELECT tokens.* FROM ${from} WHERE ${where}
           ${newest === null ? '' : `AND ${sortKey} < ${newest}`}
         ORDER BY ${sortKey} DESC LIMIT ${parameters.add(size, 'bigint')}) AS items
         ORDER BY serial DESC`,
        parameters.values,
      )
      return rows.map(tokenOf)
    },

    /** Returns the stored sums, less tokens that are expired but not swept yet. */
    usage: async (tenantId, { now, since }) => {
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
    },
  }
}

/** Adds up the stored sums, because counting all tokens would mean reading them. */
function countOfAll({ now }: TokenQuery, parameters: Parameters): string {
  const at = parameters.add(now, 'bigint')
  return `(SELECT coalesce(sum(count), 0)::bigint FROM token_counts
      WHERE tenant = $1 AND made_in = '${NIL_ID}')
    - (SELECT count(*) FROM tokens WHERE tenant = $1 AND expires_at <= ${at} AND ${VISIBLE})`
}

function isEverything({ where, within }: TokenQuery): boolean {
  return within === null && where.kind === 'all' && where.of.length === 0
}
