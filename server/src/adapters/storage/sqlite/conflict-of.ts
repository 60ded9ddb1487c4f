import type { Conflict } from '../../../ports/change.ts'
import type { StoredToken } from '../../../ports/stored.ts'
import type { Refused } from './run-batch.ts'
import { STATEMENTS } from './statements.ts'

/**
 * Returns the conflict that a refused step stands for. `tokens` are the tokens that the commit
 * inserts, in order, or the one it updates. Throws for a step that is never refused.
 */
export function conflictOf(
  { statement, tokens: before }: Refused,
  tokens: readonly StoredToken[],
): Conflict {
  const refused = STATEMENTS[statement]!
  const kind = refused.refuses === undefined ? null : refused.conflict
  if (kind === null) throw new Error(`A step was refused that cannot be: ${refused.sql}`)
  if (kind === 'token-id-taken') return { kind, id: tokens[before]!.id }
  if (kind !== 'fingerprint-taken') return { kind }
  const { type, fingerprint } = tokens[before]!
  return { kind, type, fingerprint: fingerprint! }
}
