import { isUuid } from '../../../base/id.ts'
import { JOBS_TAKEN_BYTES_MAX } from '../../../base/limits.ts'
import { sizesOf, type JobCounts, type JobReader, type StoredJob } from '../../../ports/jobs.ts'
import { storedOf } from './entity-rows.ts'
import type { PostgresRow } from './rows.ts'
import type { AskPostgres } from './session.ts'

export function jobReader(ask: AskPostgres): JobReader {
  return {
    find: async (tenantId, id) => {
      if (!isUuid(id)) return null
      const values = [tenantId, id]
      const [row] = await ask('SELECT * FROM jobs WHERE tenant = $1 AND id = $2', values)
      return row === undefined ? null : storedOf('job', row)
    },

    due: async (tenantId, { stage, now, limit, without }) => {
      const rows = await ask(
        `SELECT * FROM (
           SELECT *, coalesce(sum(octet_length(terms) + coalesce(octet_length(result), 0)) OVER (
             ORDER BY due_at, id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS bytes_before
           FROM (SELECT * FROM jobs WHERE tenant = $1 AND stage = $2 AND due_at <= $3
             AND lane <> ALL($4::text[]) ORDER BY due_at, id LIMIT $5) AS due) AS counted
         WHERE bytes_before < ${JOBS_TAKEN_BYTES_MAX} ORDER BY due_at, id`,
        [tenantId, stage, now, without, limit],
      )
      return rows.map((it) => storedOf('job', it))
    },

    unfinished: async (tenantId) => {
      const [row] = await ask(
        "SELECT count(*) AS count FROM jobs WHERE tenant = $1 AND stage IN ('run', 'deliver')",
        [tenantId],
      )
      return Number(row!.count)
    },

    sizes: async (tenantId) =>
      sizesOf(
        await ask(
          `SELECT stage, count(*) AS count,
             sum(octet_length(terms) + coalesce(octet_length(result), 0)) AS bytes
           FROM jobs WHERE tenant = $1 GROUP BY stage`,
          [tenantId],
        ),
      ),

    deadLetters: async (tenantId, limit, after) => {
      const rows = await ask(
        `SELECT id, reactor, stage, claimed, lane, due_at, attempts, created_at, terms, revision
         FROM jobs WHERE tenant = $1 AND stage = 'dead' AND ($2::uuid IS NULL OR id > $2)
         ORDER BY id LIMIT $3`,
        [tenantId, after ?? null, limit],
      )
      return rows.map(withoutResult)
    },

    callbackSecrets: async (tenantId) => {
      const [row] = await ask('SELECT secrets, revision FROM callback_secrets WHERE tenant = $1', [
        tenantId,
      ])
      if (row === undefined) return null
      return { secrets: row.secrets as Uint8Array, revision: Number(row.revision) }
    },

    counts: async () => {
      const all = { run: 0, deliver: 0, dead: 0 }
      const rows = await ask(
        `SELECT stage, count(*) AS count FROM jobs JOIN tenants ON tenants.id = tenant
         WHERE stage IN ('run', 'deliver', 'dead') GROUP BY stage`,
        [],
      )
      for (const { stage, count } of rows) all[stage as keyof JobCounts] = Number(count)
      return all
    },

    tenantIds: async (now) => {
      const rows = await ask(
        'SELECT DISTINCT tenant FROM jobs JOIN tenants ON tenants.id = tenant WHERE due_at <= $1',
        [now],
      )
      return rows.map((row) => String(row.tenant))
    },
  }
}

function withoutResult(row: PostgresRow): Omit<StoredJob, 'result'> {
  const { result: _result, ...job } = storedOf('job', row)
  return job
}
