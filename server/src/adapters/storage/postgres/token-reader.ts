import { INLINE_DATA_BYTES_MAX } from '../../../base/limits.ts'
import type { TokenReader } from '../../../ports/store.ts'
import { TokenFinder } from './token-finder.ts'
import { tokenOf, type PostgresRow } from './rows.ts'
import type { AskPostgres } from './session.ts'
import { packText } from './text.ts'
import { Parameters, inOneOf } from './token-conditions.ts'
import { foundColumns } from './token-content.ts'
import { tokenLists } from './token-lists.ts'
import { findDuplicateWithin, findWithin, knownWithin } from './token-reader-within.ts'
import { usageReader } from './usage-reader.ts'
import { VISIBLE, livesAt } from './visibility.ts'
import type { DuplicateQuery } from '../../../ports/token-query.ts'
import { DataCount } from '../../../ports/too-much-data.ts'

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
      const [row] = await findDuplicate(tenantId, asked, now, foundColumns('tokens'))
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

    ...tokenLists(ask),
    usage: usageReader(ask),
  }
}
