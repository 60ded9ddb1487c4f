import { JOBS_TAKEN } from '../../base/limits.ts'
import type { Store } from '../../ports/store.ts'

/**
 * Claims every waiting run without running it, so that the next worker finds it already begun: it counts as interrupted,
 * and runs again only if its caller allowed that.
 *
 * For a restored copy of a vault: a run that waits in the copy was very likely run by the original.
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
      if (conflict !== null) throw new Error('Another process works on the copy')
    }
  }
}

/** A claim until then ends only when the store is opened again. */
const NEVER = Number.MAX_SAFE_INTEGER
