import { JOBS_TAKEN_BYTES_MAX } from '../../../src/base/limits.ts'
import { takeWithin } from '../../../src/base/take-within.ts'
import type { ChangeOf, Conflict } from '../../../src/ports/change.ts'
import { bytesOfJob, sizesOf, type JobReader } from '../../../src/ports/jobs.ts'
import type { MemoryEntities } from './memory-entities.ts'
import { compare, copyOf } from './memory-table.ts'

/** Reads invocations without a waiting caller: a part of the memory store. */
export function jobReader(entities: MemoryEntities, isTenant: (id: string) => boolean): JobReader {
  const jobs = entities.table('job')
  return {
    find: async (tenantId, id) => copyOf(jobs.find(tenantId, id)),
    due: async (tenantId, { stage, now, limit, without }) => {
      const due = jobs
        .all(tenantId)
        .filter(
          (it) => it.stage === stage && it.dueAt <= now && !without.includes(it.deliveryQueue),
        )
        .sort((a, b) => a.dueAt - b.dueAt || compare(a.id, b.id))
      return copyOf(takeWithin(due.slice(0, limit), bytesOfJob, JOBS_TAKEN_BYTES_MAX).taken)
    },
    unfinished: async (tenantId) =>
      jobs.all(tenantId).filter(({ stage }) => stage === 'run' || stage === 'deliver').length,
    sizes: async (tenantId) =>
      sizesOf(
        jobs.all(tenantId).map((it) => ({ stage: it.stage, count: 1, bytes: bytesOfJob(it) })),
      ),
    deadLetters: async (tenantId, limit, after = '') => {
      const dead = jobs
        .all(tenantId)
        .filter((it) => it.stage === 'dead' && it.id > after)
        .sort((a, b) => compare(a.id, b.id))
      return copyOf(dead.slice(0, limit).map(({ result: _result, ...it }) => it))
    },
    callbackSecrets: async (tenantId) =>
      copyOf(entities.table('callback_secret').find(tenantId, '')),
    counts: async () => {
      const all = { run: 0, deliver: 0, dead: 0 }
      for (const [tenantId, { stage }] of jobs.everywhere()) {
        if (stage !== 'keep' && isTenant(tenantId)) all[stage] += 1
      }
      return all
    },
    tenantIds: async (now) => {
      const due = [...jobs.everywhere()].filter(([, it]) => it.dueAt <= now)
      return [...new Set(due.map(([tenantId]) => tenantId))].filter(isTenant)
    },
  }
}

export function claimJob(
  entities: MemoryEntities,
  tenantId: string,
  { id, revision, dueAt }: ChangeOf<'claim-job'>,
): Conflict | null {
  const job = entities.table('job').find(tenantId, id)
  if (job?.revision !== revision) return { kind: 'job-changed' }
  const claim = { claimed: true, dueAt, attempts: job.attempts + 1, revision: revision + 1 }
  entities.table('job').put(tenantId, id, { ...job, ...claim })
  return null
}
