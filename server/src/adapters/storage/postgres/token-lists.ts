import { NIL_ID, isUuid } from '../../../base/id.ts'
import type { TokenReader } from '../../../ports/store.ts'
import type { TokenQuery } from '../../../ports/token-query.ts'
import { pageOf } from './entity-reader.ts'
import { tokenOf } from './rows.ts'
import type { AskPostgres } from './session.ts'
import { Parameters, selectionOf } from './token-conditions.ts'
import { foundColumns } from './token-content.ts'
import { VISIBLE } from './visibility.ts'

export function tokenLists(ask: AskPostgres): Pick<TokenReader, 'list' | 'listAfter'> {
  return {
    /** Runs one statement, so page and total come from the same snapshot. */
    list: async (tenantId, query, { page, size }) => {
      const parameters = new Parameters()
      parameters.add(tenantId, 'uuid')
      const total = isEverything(query) ? countOfAll(query, parameters) : null
      const { from, where, sortKey } = selectionOf(query, parameters)
      const window = [size, (page - 1) * size].map((it) => parameters.add(it, 'bigint'))
      const rows = await ask(
        `SELECT total, ${foundColumns('items')} FROM
           (SELECT ${total ?? `count(*) FROM ${from} WHERE ${where}`}) AS counted (total)
         LEFT JOIN (SELECT tokens.* FROM ${from} WHERE ${where}
           ORDER BY ${sortKey} DESC LIMIT ${window[0]} OFFSET ${window[1]}) AS items ON true
         ORDER BY items.serial DESC`,
        parameters.values,
      )
      return pageOf(rows, tokenOf, 'serial')
    },

    listAfter: async (tenantId, query, { after, size }) => {
      const parameters = new Parameters()
      parameters.add(tenantId, 'uuid')
      const { from, where, sortKey } = selectionOf(query, parameters)
      const newest = after !== null && isUuid(after) ? parameters.add(after, 'uuid') : null
      const rows = await ask(
        `SELECT ${foundColumns('items')} FROM (SELECT tokens.* FROM ${from} WHERE ${where}
           ${newest === null ? '' : `AND ${sortKey} < ${newest}`}
         ORDER BY ${sortKey} DESC LIMIT ${parameters.add(size, 'bigint')}) AS items
         ORDER BY serial DESC`,
        parameters.values,
      )
      return rows.map(tokenOf)
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
