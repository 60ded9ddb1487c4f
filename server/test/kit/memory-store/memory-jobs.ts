import { JOBS_TAKEN_BYTES_MAX } from '../../../src/base/limits.ts'
import { takeWithin } from '../../../src/base/take-within.ts'
import {
  bytesOfJob,
  sizesOf,
  type JobChange,
  type JobConflict,
  type JobReader,
  type StoredCallbackSecrets,
  type StoredJob,
} from '../../../src/ports/jobs.ts'
import type { Change } from '../../../src/ports/change.ts'
import { wholeEnvelope, type MemoryEnvelope } from './memory-envelopes.ts'
import { MemoryTable, compare, copyOf } from './memory-table.ts'

/** Whether MemoryJobs handles the change. */
export function isJobChange(change: Change): change is JobChange {
  return JOB_CHANGES.has(change.kind)
}

const JOB_CHANGES: ReadonlySet<Change['kind']> = new Set<JobChange['kind']>([
  'insert-job',
  'claim-job',
  'update-job',
  'delete-job',
  'put-callback-secrets',
])

/** Invocations without a waiting caller: a part of the memory store. */
export class MemoryJobs {
  readonly #jobs: MemoryTable<StoredJob>
  readonly #secrets: MemoryTable<StoredCallbackSecrets>
  readonly #isTenant: (id: string) => boolean

  /** `undo` collects how to revert each change. */
  constructor(undo: (() => void)[], isTenant: (id: string) => boolean) {
    this.#jobs = new MemoryTable<StoredJob>(undo)
    this.#secrets = new MemoryTable<StoredCallbackSecrets>(undo)
    this.#isTenant = isTenant
  }

  readonly reader: JobReader = {
    find: async (tenantId, id) => copyOf(this.#jobs.find(tenantId, id)),
    due: async (tenantId, { stage, now, limit, without }) => {
      const due = this.#jobs
        .all(tenantId)
        .filter(
          (it) => it.stage === stage && it.dueAt <= now && !without.includes(it.deliveryQueue),
        )
        .sort((a, b) => a.dueAt - b.dueAt || compare(a.id, b.id))
      return copyOf(takeWithin(due.slice(0, limit), bytesOfJob, JOBS_TAKEN_BYTES_MAX).taken)
    },
    unfinished: async (tenantId) =>
      this.#jobs.all(tenantId).filter(({ stage }) => stage === 'run' || stage === 'deliver').length,
    sizes: async (tenantId) =>
      sizesOf(
        this.#jobs
          .all(tenantId)
          .map((it) => ({ stage: it.stage, count: 1, bytes: bytesOfJob(it) })),
      ),
    deadLetters: async (tenantId, limit, after = '') => {
      const dead = this.#jobs
        .all(tenantId)
        .filter((it) => it.stage === 'dead' && it.id > after)
        .sort((a, b) => compare(a.id, b.id))
      return copyOf(dead.slice(0, limit).map(({ result: _result, ...it }) => it))
    },
    callbackSecrets: async (tenantId) => copyOf(this.#secrets.find(tenantId, tenantId)),
    counts: async () => {
      const all = { run: 0, deliver: 0, dead: 0 }
      for (const [tenantId, { stage }] of this.#jobs.everywhere()) {
        if (stage !== 'keep' && this.#isTenant(tenantId)) all[stage] += 1
      }
      return all
    },
    tenantIds: async (now) => {
      const due = [...this.#jobs.everywhere()].filter(([, it]) => it.dueAt <= now)
      return [...new Set(due.map(([tenantId]) => tenantId))].filter(this.#isTenant)
    },
  }

  apply(tenantId: string, change: JobChange): JobConflict | null {
    switch (change.kind) {
      case 'insert-job': {
        const { job } = change
        if (this.#jobs.find(tenantId, job.id)) throw new Error('Cannot insert: the id is taken')
        this.#jobs.put(tenantId, job.id, job)
        return null
      }

      case 'claim-job': {
        const { id, revision, dueAt } = change
        const job = this.#jobs.find(tenantId, id)
        if (job?.revision !== revision) return { kind: 'job-changed' }
        const claim = { claimed: true, dueAt, attempts: job.attempts + 1, revision: revision + 1 }
        this.#jobs.put(tenantId, id, { ...job, ...claim })
        return null
      }

      case 'update-job': {
        const before = this.#jobs.find(tenantId, change.job.id)
        if (before?.revision !== change.job.revision - 1) return { kind: 'job-changed' }
        const { reactorId, createdAt } = before
        this.#jobs.put(tenantId, before.id, { ...change.job, reactorId, createdAt })
        return null
      }

      case 'delete-job':
        if (this.#jobs.find(tenantId, change.id)?.revision !== change.revision) {
          return { kind: 'job-changed' }
        }
        this.#jobs.delete(tenantId, change.id)
        return null

      case 'put-callback-secrets': {
        const before = this.#secrets.find(tenantId, tenantId)?.revision ?? -1
        if (before !== change.secrets.revision - 1) return { kind: 'callback-secrets-changed' }
        this.#secrets.put(tenantId, tenantId, change.secrets)
        return null
      }

      default:
        throw new TypeError('Cannot change a job: a change is of no known kind', {
          cause: change satisfies never,
        })
    }
  }

  sealed(tenantId: string): MemoryEnvelope[] {
    const jobs = this.#jobs.all(tenantId).flatMap((it) => this.#sealedIn(tenantId, it))
    const secrets = this.#secrets.all(tenantId).map((it) =>
      wholeEnvelope('callback_secrets', tenantId, it.secrets, (renewed) => {
        this.#secrets.put(tenantId, tenantId, { ...it, secrets: renewed })
      }),
    )
    return [...jobs, ...secrets]
  }

  #sealedIn(tenantId: string, job: StoredJob): MemoryEnvelope[] {
    return (['terms', 'result'] as const).flatMap((part) => {
      const envelope = job[part]
      if (envelope === null) return []
      const renew = (renewed: Uint8Array): void =>
        this.#jobs.put(tenantId, job.id, { ...job, [part]: renewed })
      return [{ ...wholeEnvelope('jobs', job.id, envelope, renew), part }]
    })
  }

  belongings(): MemoryTable<unknown>[] {
    return [this.#jobs, this.#secrets]
  }
}
