import { JOBS_TAKEN } from '../../base/limits.ts'
import type { Store } from '../../ports/store.ts'

/**
 * Takes every run that waits, for nobody, so that whoever comes next finds it begun: it is interrupted, and run again
 * only where its caller allowed that.
 *
 * For the copy of a vault that went on without it: what waits in the copy was very likely run in the original.
 */
export async function abandonRuns(store: Pick<Store, 'jobs' | 'commit'>): Promise<void> {
  for (const tenantId of await store.jobs.tenantIds(NEVER)) {
    const query = { stage: 'run', now: NEVER - 1, limit: JOBS_TAKEN, without: [] } as const
    for (;;) {
      const jobs = await store.jobs.due(tenantId, query)
      if (jobs.length === 0) break
      const claims = jobs.map(({ id, revision }) => {
        return { kind: 'claim-job', id, revision, dueAt: NEVER } as const
      })
      const conflict = await store.commit(tenantId, claims)
      if (conflict !== null) throw new Error('Somebody else works on the copy')
    }
  }
}

/** When a claim ends that ends when the store is opened the next time, and not before. */
const NEVER = Number.MAX_SAFE_INTEGER
