/** Inserts tokens, in bulk and after the checks for conflicts. */
import { isUuid } from '../../../base/id.ts'
import type { Conflict } from '../../../ports/change.ts'
import type { StoredToken } from '../../../ports/stored.ts'
import { indexTermsOf } from '../../../ports/index-terms.ts'
import { columnsOf, rowsFrom, type Columns } from './several-rows.ts'
import type { PostgresRow } from './rows.ts'
import { kept, type Session } from './session.ts'
import { packText } from './text.ts'
import { COMMON, CONTENT, contentOf } from './token-content.ts'
import { insertIndexTerms, type IndexTermRow } from './index-term-rows.ts'
import { countedOf } from './token-tally.ts'
import { expireIfPast } from './transaction-changes.ts'
import { duplicatesOf } from './duplicate-checks.ts'
import type { ChangeStep, UnitOfWork } from './unit-of-work.ts'

const MADE = {
  tenant: 'uuid',
  serial: 'uuid',
  type: 'text',
  created_by: 'text',
  created_at: 'bigint',
} as const

const COLUMNS = { ...MADE, ...CONTENT, name: 'text', uuid_name: 'uuid', made_in: 'uuid' } as const

/** Columns without those that are usually null: every column of a statement costs something for every row. */
const PLAIN = { ...MADE, ...COMMON } as const
const PLAIN_COLUMNS = Object.keys(PLAIN).length

/** Tokens per INSERT statement. */
export const ROWS_AT_ONCE = 1_000

const INSERT = kept('insert-tokens', insertInto(COLUMNS))
const INSERT_PLAIN = kept('insert-plain-tokens', insertInto(PLAIN))

/**
 * Returns an INSERT that skips rows whose internal id is already the name of another token. Few names are UUIDs, so the
 * check is cheap, one row at a time: LIMIT keeps the plan from becoming a join, which might read the whole table. A
 * taken internal id or name fails the statement.
 */
function insertInto(columns: Columns): string {
  const names = Object.keys(columns).join(', ')
  return `INSERT INTO tokens (${names}) SELECT ${names} FROM ${rowsFrom(columns, 'rows')}
    WHERE (SELECT 1 FROM tokens AS named WHERE named.tenant = rows.tenant
      AND named.uuid_name = rows.serial LIMIT 1) IS NULL`
}

/** A token to insert, its tenant, and the transaction it is made in, if any. */
export interface TokenInsert {
  readonly tenantId: string
  readonly token: StoredToken
  readonly within: string | null
}

/** Inserts tokens and their index terms. Returns false, or rejects, if one of them exists already. */
export async function insertTokens(
  session: Session,
  tokens: readonly TokenInsert[],
): Promise<boolean> {
  for (let at = 0; at < tokens.length; at += ROWS_AT_ONCE) {
    const rows = tokens.slice(at, at + ROWS_AT_ONCE).map(rowOf)
    const made = rows.every(isPlainRow)
      ? await session.run(INSERT_PLAIN, columnsOf(PLAIN, rows))
      : await session.run(INSERT, columnsOf(COLUMNS, rows))
    if (made !== rows.length) return false
  }
  const terms = tokens.flatMap(({ tenantId, token }) =>
    indexTermsOf(token).map((hash): IndexTermRow => [tenantId, hash, token.internalId]),
  )
  await insertIndexTerms(session, terms)
  return true
}

export function isNamedByUuid({ id, internalId }: StoredToken): boolean {
  return id !== internalId && isUuid(id)
}

function rowOf({ tenantId, token, within }: TokenInsert) {
  const { id, internalId } = token
  return [
    tenantId,
    internalId,
    packText(token.type),
    packText(token.createdBy),
    token.createdAt,
    ...contentOf(token),
    id === internalId ? null : packText(id),
    isNamedByUuid(token) ? id : null,
    within,
  ]
}

function isPlainRow(row: readonly unknown[]): boolean {
  for (let n = PLAIN_COLUMNS; n < row.length; n++) if (row[n] !== null) return false
  return true
}

/** Inserts a commit's tokens, unless one has a duplicate or its name is taken. */
export async function insertInOrder(
  unitOfWork: UnitOfWork,
  tokens: readonly StoredToken[],
): ChangeStep {
  if (tokens.length === 0) return null
  const { session, tenantId, within, tally } = unitOfWork
  const conflict = await conflictAmong(unitOfWork, tokens)
  if (conflict !== null) return conflict
  const all = tokens.map((token) => ({ tenantId, token, within }))
  if (!(await insertTokens(session, all))) {
    throw new Error('A token was inserted while its tenant was locked')
  }
  for (const it of tokens) tally.add(tenantId, countedOf(it, within), 1)
  return null
}

/** Returns the conflict of the first token that cannot be inserted, as if they were inserted one after the other. */
async function conflictAmong(
  unitOfWork: UnitOfWork,
  tokens: readonly StoredToken[],
): Promise<Conflict | null> {
  const duplicates = await duplicatesOf(unitOfWork, tokens)
  const taken = await takenNames(unitOfWork, tokens)
  const live = new Map<string, StoredToken[]>()
  const names = new Set<string>()
  for (const [n, token] of tokens.entries()) {
    const { id, internalId, type, fingerprint, createdAt: now } = token
    if (fingerprint !== null) {
      const key = JSON.stringify([type, fingerprint])
      const before = live.get(key) ?? []
      const duplicate = before.some((it) => it.expiresAt === null || it.expiresAt > now)
      if (token.deduplicate && (duplicate || duplicates.has(n))) {
        return { kind: 'fingerprint-taken', type, fingerprint }
      }
      live.set(key, [...before, token])
    }
    for (const name of new Set([id, internalId])) {
      const holder = taken.get(name)
      if (names.has(name)) return { kind: 'token-id-taken', id }
      if (holder !== undefined && !(await isFreed(unitOfWork, holder, name, now))) {
        return { kind: 'token-id-taken', id }
      }
    }
    names.add(id).add(internalId)
  }
  return null
}

/** Returns the existing tokens under the names and internal ids of `tokens`, which share one namespace. */
async function takenNames(
  { session, tenantId }: UnitOfWork,
  tokens: readonly StoredToken[],
): Promise<Map<string, PostgresRow>> {
  const names = tokens.map((it) => it.id)
  const internalIds = [...tokens.map((it) => it.internalId), ...names.filter(isUuid)]
  const ids = [...names, ...tokens.map((it) => it.internalId)].map(packText)
  const rows = await session.ask(
    `SELECT serial, name, made_in, maker.state FROM tokens
     LEFT JOIN transactions AS maker ON maker.tenant = tokens.tenant AND maker.id = made_in
     WHERE tokens.tenant = $1 AND serial = ANY($2::uuid[])
     UNION ALL
     SELECT serial, name, made_in, maker.state FROM tokens
     LEFT JOIN transactions AS maker ON maker.tenant = tokens.tenant AND maker.id = made_in
     WHERE tokens.tenant = $1 AND name = ANY($3::text[])`,
    [tenantId, [...new Set(internalIds)], [...new Set(ids)]],
  )
  const asked = new Map(
    tokens.flatMap(({ id, internalId }) => [id, internalId].map((it) => [packText(it), it])),
  )
  const taken = new Map<string, PostgresRow>()
  for (const row of rows) {
    const internalId = String(row.serial)
    if (asked.has(internalId)) taken.set(internalId, row)
    const name = row.name === null ? undefined : asked.get(String(row.name))
    if (name !== undefined) taken.set(name, row)
  }
  return taken
}

/**
 * Frees a name reserved by a transaction that was not committed; returns whether it did. The row keeps its internal id
 * until it is swept.
 */
async function isFreed(
  { session, tenantId }: UnitOfWork,
  row: PostgresRow,
  name: string,
  now: number,
): Promise<boolean> {
  const { serial: internalId, made_in: maker, state } = row
  if (typeof maker !== 'string' || state === null || state === 'committed') return false
  const dead = state !== 'open' || (await expireIfPast(session, tenantId, maker, now))
  if (!dead || row.name === null || internalId === name) return false
  await session.run(
    'UPDATE tokens SET name = NULL, uuid_name = NULL WHERE tenant = $1 AND serial = $2',
    [tenantId, String(internalId)],
  )
  return true
}
