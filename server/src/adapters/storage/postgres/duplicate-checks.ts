/** Finds duplicates: live tokens of the same type and fingerprint. */
import { NIL_ID } from '../../../base/id.ts'
import type { StoredToken } from '../../../ports/stored.ts'
import { columnsOf, rowsFrom } from './several-rows.ts'
import type { Session } from './session.ts'
import { packText } from './text.ts'
import type { UnitOfWork } from './unit-of-work.ts'
import { VISIBLE, livesAt, madeIn } from './visibility.ts'

const ASKED = {
  n: 'integer',
  tenant: 'uuid',
  type: 'text',
  fingerprint: 'text',
  now: 'bigint',
  own: 'uuid',
} as const

interface DuplicateLookup {
  readonly tenantId: string
  readonly token: StoredToken
  readonly now: number
  /** Internal id to exclude from the search: the token itself, if it exists already. */
  readonly own?: string
}

const SAME = `tokens.tenant = asked.tenant AND tokens.type = asked.type
  AND tokens.fingerprint = asked.fingerprint AND tokens.serial <> asked.own
  AND ${livesAt('asked.now')}`

/** Seen from outside transactions: tokens of open transactions do not count. */
const DUPLICATE = `EXISTS (SELECT 1 FROM tokens WHERE ${SAME} AND ${VISIBLE})`

/** Seen from inside the transaction: counts its own tokens and its pending updates, but not its pending deletions. */
const DUPLICATE_WITHIN = `EXISTS (SELECT 1 FROM tokens WHERE ${SAME} AND (${VISIBLE} OR ${madeIn('$7::uuid')})
    AND NOT EXISTS (SELECT 1 FROM pending WHERE pending.tenant = tokens.tenant
      AND pending.serial = tokens.serial AND pending.holder = $7::uuid))
  OR EXISTS (SELECT 1 FROM pending JOIN tokens
      ON tokens.tenant = pending.tenant AND tokens.serial = pending.serial
    WHERE pending.tenant = asked.tenant AND pending.holder = $7::uuid
      AND pending.fingerprint = asked.fingerprint AND tokens.type = asked.type
      AND pending.serial <> asked.own AND NOT pending.deleted
      AND ${livesAt('asked.now', 'pending')} AND ${livesAt('asked.now')})`

/** Returns the indexes of the items in `asked` that have a duplicate. */
async function haveDuplicates(
  session: Session,
  asked: readonly DuplicateLookup[],
  within: string | null,
): Promise<Set<number>> {
  const rows = asked.map(({ tenantId, token, now, own }, n) => [
    n,
    tenantId,
    packText(token.type),
    packText(token.fingerprint!),
    now,
    own ?? NIL_ID,
  ])
  const duplicate = within === null ? DUPLICATE : DUPLICATE_WITHIN
  const found = await session.ask(
    `SELECT n FROM ${rowsFrom(ASKED, 'asked')} WHERE ${duplicate}`,
    within === null ? columnsOf(ASKED, rows) : [...columnsOf(ASKED, rows), within],
  )
  return new Set(found.map((row) => Number(row.n)))
}

/** Returns the indexes of the new `tokens` that ask for deduplication and have a duplicate. */
export async function duplicatesOf(
  { session, tenantId, within }: UnitOfWork,
  tokens: readonly StoredToken[],
): Promise<Set<number>> {
  const places = [...tokens.keys()].filter((n) => mustBeUnique(tokens[n]!))
  if (places.length === 0) return new Set()
  const asked = places.map((n) => ({ tenantId, token: tokens[n]!, now: tokens[n]!.createdAt }))
  const found = await haveDuplicates(session, asked, within)
  return new Set(places.filter((_place, n) => found.has(n)))
}

/** Whether another token would be a duplicate of the changed `token`. */
export async function hasDuplicate(
  { session, tenantId, within }: UnitOfWork,
  token: StoredToken,
  now: number,
): Promise<boolean> {
  return (
    (await haveDuplicates(session, [{ tenantId, token, now, own: token.internalId }], within))
      .size > 0
  )
}

/** Returns the indexes of the items that have a duplicate, seen from outside transactions. */
export async function placesOfDuplicates(
  session: Session,
  asked: readonly DuplicateLookup[],
): Promise<Set<number>> {
  return asked.length === 0 ? new Set() : await haveDuplicates(session, asked, null)
}

export function mustBeUnique({ deduplicate, fingerprint }: StoredToken): boolean {
  return deduplicate && fingerprint !== null
}
