import { DatabaseError } from 'pg'

/**
 * Resolves as Promise.all() does, but rejects only once every promise has settled: the next statement on a connection
 * must not overlap with earlier ones that are still running.
 *
 * Rejects with the root cause, not with a consequence. After a failed statement the database refuses all that follow in
 * the transaction, and which rejection arrives first is chance.
 */
export async function allOf<const Promises extends readonly Promise<unknown>[]>(
  promises: Promises,
): Promise<{ -readonly [Nth in keyof Promises]: Awaited<Promises[Nth]> }> {
  try {
    return await Promise.all(promises)
  } catch (first) {
    const ends = await Promise.allSettled(promises)
    const reasons: unknown[] = ends.flatMap((it) => (it.status === 'rejected' ? [it.reason] : []))
    throw reasons.find((it) => !isConsequence(it)) ?? first
  }
}

function isConsequence(reason: unknown): boolean {
  return reason instanceof DatabaseError && reason.code === IN_FAILED_TRANSACTION
}

/** Source: postgresql.org, appendix "PostgreSQL Error Codes". */
const IN_FAILED_TRANSACTION = '25P02'
