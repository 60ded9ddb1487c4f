import type { DatabaseSync, SQLInputValue, SQLOutputValue } from 'node:sqlite'
import { INLINE_DATA_BYTES_MAX } from '../../../base/limits.ts'
import type { TokenReader } from '../../../ports/store.ts'
import type { FoundToken } from '../../../ports/stored.ts'
import type { DuplicateQuery } from '../../../ports/token-query.ts'
import { DataCount } from '../../../ports/too-much-data.ts'
import { readTransactionOn } from './read-transaction.ts'
import { packId } from './ids.ts'
import { columnsUpTo, tokenOf, tokenOfColumns } from './rows.ts'
import { tokenLists } from './token-lists.ts'
import { parametersOf, tokenReaderWithin, type Key } from './token-reader-within.ts'
import { BY_FINGERPRINT, VISIBLE, inOneOf, livesAt } from './visibility.ts'

export function tokenReader(db: DatabaseSync): Omit<TokenReader, 'usage'> {
  const columns = `SELECT ${columnsUpTo('?')} FROM tokens`
  const byInternalId = prepareArrays(
    db,
    `${columns} WHERE tenant = ? AND serial = ? AND name IS NULL AND ${VISIBLE}`,
  )
  const byName = prepareArrays(db, `${columns} WHERE tenant = ? AND name = ? AND ${VISIBLE}`)
  const byFingerprint = db.prepare(
    `SELECT ${columnsUpTo('?6')} FROM ${BY_FINGERPRINT}
     WHERE tenant = ?1 AND type = ?2 AND fingerprint = ?3 AND ${livesAt('?4')} AND ${VISIBLE}
       AND ${inOneOf('?5')}
     ORDER BY serial LIMIT 1`,
  )
  const inReadTransaction = readTransactionOn(db)
  const within = tokenReaderWithin(db)

  /** Finds a token; its data is null if longer than `bytesMax`. */
  function find(tenant: Key, id: string, bytesMax: number): FoundToken | null {
    const key = packId(id)
    const row =
      typeof key === 'string'
        ? byName.get(bytesMax, tenant, key)
        : (byInternalId.get(bytesMax, tenant, key) ?? byName.get(bytesMax, tenant, key))
    return row === undefined ? null : tokenOfColumns(row)
  }

  /** Works as find() does. */
  function findDuplicate(
    tenant: Key,
    asked: DuplicateQuery,
    now: number,
    transactionId: string | undefined,
    bytesMax: number,
  ): FoundToken | null {
    if (transactionId === undefined) {
      const row = byFingerprint.get(...parametersOf(tenant, asked, now), bytesMax)
      return row === undefined ? null : tokenOf(row)
    }
    return inReadTransaction(() => {
      const number = within.numberOf(tenant, transactionId)
      return number === null ? null : within.findDuplicate(tenant, asked, now, { number, bytesMax })
    })
  }

  /** Returns the look-up for a transaction, or for outside of all; works as find() does. */
  function lookWithin(tenant: Key, transactionId: string | undefined) {
    const number = transactionId === undefined ? null : within.numberOf(tenant, transactionId)
    return (id: string, bytesMax: number): FoundToken | null =>
      number === null ? find(tenant, id, bytesMax) : within.find(tenant, id, { number, bytesMax })
  }

  return {
    find: async (tenantId, ids, transactionId, bytesMax) => {
      const tenant = packId(tenantId)
      const count = new DataCount(bytesMax)
      if (ids.length === 1 && transactionId === undefined) {
        const token = find(tenant, ids[0]!, count.left)
        return token === null ? [] : count.gather([token])
      }
      return inReadTransaction(() => {
        const look = lookWithin(tenant, transactionId)
        return count.gather(each(ids, (id) => look(id, count.left)))
      })
    },

    lookUp: async (tenantId, ids, transactionId) => {
      const tenant = packId(tenantId)
      if (ids.length === 1 && transactionId === undefined) {
        const token = find(tenant, ids[0]!, INLINE_DATA_BYTES_MAX)
        return token === null ? [] : [token]
      }
      return inReadTransaction(() => {
        const look = lookWithin(tenant, transactionId)
        return [...each(ids, (id) => look(id, INLINE_DATA_BYTES_MAX))]
      })
    },

    known: async (tenantId, ids, transactionId) =>
      inReadTransaction(() => {
        const look = lookWithin(packId(tenantId), transactionId)
        return [...new Set(ids)].filter((id) => look(id, NOTHING) !== null)
      }),

    findByFingerprint: async (tenantId, type, fingerprint, now, transactionId, containers) => {
      const asked = { type, fingerprint, containers }
      return findDuplicate(packId(tenantId), asked, now, transactionId, INLINE_DATA_BYTES_MAX)
    },

    knownByFingerprint: async (tenantId, type, fingerprint, now, transactionId) => {
      const asked = { type, fingerprint }
      return findDuplicate(packId(tenantId), asked, now, transactionId, NOTHING)?.internalId ?? null
    },

    ...tokenLists(db),
  }
}

/** Yields the tokens found for `ids`, each once, on demand. */
function* each(
  ids: readonly string[],
  look: (id: string) => FoundToken | null,
): Generator<FoundToken, void> {
  for (const id of new Set(ids)) {
    const token = look(id)
    if (token !== null) yield token
  }
}

/** No token has this little data, so none is read. */
const NOTHING = 0

/** Prepares a statement whose rows are arrays. */
function prepareArrays(db: DatabaseSync, sql: string): ArrayStatement {
  const statement = db.prepare(sql)
  statement.setReturnArrays(true)
  return statement as unknown as ArrayStatement
}

interface ArrayStatement {
  get(...values: SQLInputValue[]): SQLOutputValue[] | undefined
}
