import { TimeSlice } from '../../base/time-slice.ts'
import type { JobCounts } from '../../ports/jobs.ts'
import type { Store } from '../../ports/store.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Family } from './exposition.ts'

/**
 * Reads gauges from the store on demand: the age of keys, how far the checkpoints of the audit log
 * lag, and how many jobs wait.
 *
 * Keys are read at most once per `keysEveryMs`, since there may be many tenants.
 */
export function storeFamilies(
  clock: Clock,
  store: Pick<Store, 'tenants' | 'auditLog' | 'jobs'>,
  keysEveryMs = 60_000,
): () => Promise<Family[]> {
  let keys: Family[] = []
  let lookedAt = -Infinity

  return async () => {
    if (clock.elapsed() - lookedAt >= keysEveryMs) {
      lookedAt = clock.elapsed()
      keys = await keyFamilies(clock, store)
    }
    return [...keys, await checkpointLag(store), jobFamily(await store.jobs.counts())]
  }
}

async function keyFamilies(clock: Clock, store: Pick<Store, 'tenants'>): Promise<Family[]> {
  let [oldest, rotating] = [Infinity, 0]
  const ids = await store.tenants.ids()
  const slice = new TimeSlice(clock)
  for (const id of ids) {
    const keys = (await store.tenants.keys(id)).filter((it) => it.purpose === 'enc')
    const newest = keys.reduce((latest, it) => Math.max(latest, it.createdAt), 0)
    if (keys.length > 0) oldest = Math.min(oldest, newest)
    if (keys.length > 1) rotating += 1
    await slice.yieldIfDue()
  }
  const age = Number.isFinite(oldest) ? Math.max(0, clock.now() - oldest) / 1000 : 0
  return [
    gauge('symbolon_tenants', 'Tenants there are.', ids.length),
    gauge(
      'symbolon_data_key_age_seconds',
      'Of the data key that was not replaced for longest.',
      age,
    ),
    gauge('symbolon_data_keys_rotating', 'Tenants whose data key is being replaced.', rotating),
  ]
}

async function checkpointLag(store: Pick<Store, 'auditLog'>): Promise<Family> {
  let events = 0
  for (const id of await store.auditLog.tenantIds('beyond-checkpoint')) {
    const state = await store.auditLog.state(id)
    if (state === null) continue
    events += state.last.number - (state.checkpoint?.last ?? state.removed).number
  }
  return gauge(
    'symbolon_record_unsealed_entries',
    'Audit events after the last checkpoint.',
    events,
  )
}

function jobFamily({ run, deliver, dead }: JobCounts): Family {
  return {
    name: 'symbolon_jobs',
    help: 'Invocations without a waiting caller, and callbacks, by what is to be done next.',
    type: 'gauge',
    samples: Object.entries({ run, deliver, dead }).map(([stage, value]) => {
      return { labels: { stage }, value }
    }),
  }
}

export function gauge(name: string, help: string, value: number): Family {
  return { name, help, type: 'gauge', samples: [{ value }] }
}
