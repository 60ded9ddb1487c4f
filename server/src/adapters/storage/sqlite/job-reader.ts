import type { DatabaseSync } from 'node:sqlite'
import { JOBS_TAKEN_BYTES_MAX } from '../../../base/limits.ts'
import { takeWithin } from '../../../base/take-within.ts'
import {
  bytesOfJob,
  sizesOf,
  type JobCounts,
  type JobReader,
  type StoredJob,
} from '../../../ports/jobs.ts'
import { readTransactionOn } from './read-transaction.ts'
import { storedOf } from './entity-rows.ts'
import { packId, unpackId } from './ids.ts'
import type { SqliteRow } from './rows.ts'

export function jobReader(db: DatabaseSync): JobReader {
  const byId = db.prepare('SELECT * FROM jobs WHERE tenant = ? AND id = ?')
  // Finds row ids first: sorting whole jobs would read all their content.
  const dueRows = db.prepare(`SELECT rowid FROM jobs INDEXED BY jobs_by_due
    WHERE tenant = ?1 AND stage = ?2 AND due_at <= ?3
      AND lane NOT IN (SELECT value FROM json_each(?4)) ORDER BY due_at, id LIMIT ?5`)
  const inReadTransaction = readTransactionOn(db)
  const byRow = db.prepare('SELECT * FROM jobs WHERE rowid = ?')
  const unfinished = db.prepare(
    "SELECT count(*) AS number FROM jobs WHERE tenant = ? AND stage IN ('run', 'deliver')",
  )
  const sizes = db.prepare('SELECT stage, count, bytes FROM job_sizes WHERE tenant = ?')
  const dead =
    db.prepare(`SELECT id, reactor, stage, claimed, lane, due_at, attempts, created_at, terms, revision
    FROM jobs WHERE tenant = ? AND stage = 'dead' AND id > ? ORDER BY id LIMIT ?`)
  const secrets = db.prepare('SELECT secrets, revision FROM callback_secrets WHERE tenant = ?')
  const tenants = db.prepare(
    'SELECT DISTINCT tenant FROM jobs JOIN tenants ON tenants.id = tenant WHERE due_at <= ?',
  )
  const counts = db.prepare(COUNT_JOBS)

  return {
    find: async (tenantId, id) => {
      const row = byId.get(packId(tenantId), packId(id))
      return row === undefined ? null : storedOf('job', row)
    },
    due: async (tenantId, { stage, now, limit, without }) =>
      inReadTransaction(() => {
        const rows = dueRows.all(packId(tenantId), stage, now, JSON.stringify(without), limit)
        const jobs = Iterator.from(rows).map(({ rowid }) => storedOf('job', byRow.get(rowid!)!))
        return takeWithin(jobs, bytesOfJob, JOBS_TAKEN_BYTES_MAX).taken
      }),
    unfinished: async (tenantId) => Number(unfinished.get(packId(tenantId))!['number']),
    sizes: async (tenantId) => sizesOf(sizes.all(packId(tenantId))),
    deadLetters: async (tenantId, limit, after) =>
      dead
        .all(packId(tenantId), after === undefined ? new Uint8Array() : packId(after), limit)
        .map(withoutResult),
    callbackSecrets: async (tenantId) => {
      const row = secrets.get(packId(tenantId))
      if (row === undefined) return null
      return { secrets: row['secrets'] as Uint8Array, revision: Number(row['revision']) }
    },
    counts: async () => {
      const all = { run: 0, deliver: 0, dead: 0 }
      for (const { stage, number } of counts.all()) all[stage as keyof JobCounts] = Number(number)
      return all
    },
    tenantIds: async (now) => tenants.all(now).map((row) => unpackId(row['tenant'])),
  }
}

/** Counts per tenant, so that the index skips the jobs in the stage `keep`. */
export const COUNT_JOBS = `SELECT stage, count(*) AS number FROM tenants CROSS JOIN jobs
  ON tenant = tenants.id AND stage IN ('run', 'deliver', 'dead') GROUP BY stage`

/**
 * Ends the claims of earlier processes. Only this process has the database, so they are gone, and
 * the jobs they began need not wait for their claims to expire.
 */
export function endClaims(db: DatabaseSync): void {
  db.exec('UPDATE jobs SET due_at = 0 WHERE claimed = 1')
}

function withoutResult(row: SqliteRow): Omit<StoredJob, 'result'> {
  const { result: _result, ...job } = storedOf('job', row)
  return job
}
