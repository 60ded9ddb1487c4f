/** Creation and change of a tenant's named definitions: proxies and reactors alike. */
import type { RequestContext } from '../request/context.ts'
import { ServiceError, type RefusalCode } from '../base/service-error.ts'
import type { Answer } from '../request/response.ts'
import type { StoredDefinition } from '../ports/stored.ts'
import type { World } from '../ports/world.ts'

type Audit = Omit<StoredDefinition, 'id' | 'name' | 'terms'>

/** Returns the creator and the time of creation. */
export function firstRevision(context: RequestContext, now: number): Audit {
  const { applicationId: createdBy } = context
  return { createdBy, createdAt: now, modifiedBy: null, modifiedAt: null, revision: 0 }
}

/** Returns the audit with the author and time of a change. */
export function revised(
  { clock }: Pick<World, 'clock'>,
  context: RequestContext,
  { createdBy, createdAt, revision }: StoredDefinition,
): Audit {
  const modified = { modifiedBy: context.applicationId, modifiedAt: clock.now() }
  return { createdBy, createdAt, ...modified, revision: revision + 1 }
}

/**
 * Runs `attempt`, which reads and changes a definition, again for as long as concurrent requests change it first; `attempt`
 * returns null when that happened.
 *
 * Throws `busy` after too many lost attempts, and what `attempt` throws.
 */
export async function makeChange(
  busy: RefusalCode,
  attempt: () => Promise<Answer | null>,
): Promise<Answer> {
  for (let attempts = 1; attempts <= ATTEMPTS_MAX; attempts++) {
    const answer = await attempt()
    if (answer !== null) return answer
  }
  throw new ServiceError(busy)
}

/** Each attempt loses to another request that won. */
const ATTEMPTS_MAX = 100
