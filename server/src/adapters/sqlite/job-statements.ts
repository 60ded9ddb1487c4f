/** Statements that write jobs; each names the revision that was read. */
import type { Param, Statement } from './statements.ts'

const JOB: Readonly<Record<string, Param>> = {
  tenant: 'id',
  id: 'id',
  stage: 'text',
  claimed: 'integer',
  lane: 'text',
  due_at: 'integer',
  attempts: 'integer',
  terms: 'bytes',
  result: 'bytes',
  revision: 'integer',
  reactor: 'id',
  created_at: 'integer',
}

const COLUMNS = Object.keys(JOB)
const CHANGING = COLUMNS.slice(2, -2)

export const JOB_TABLE = {
  insertJob: {
    sql: `INSERT INTO jobs (${COLUMNS.join(', ')}) VALUES (${COLUMNS.map(() => '?').join(', ')})`,
    params: Object.values(JOB),
    refuses: 'never',
  },

  claimJob: {
    sql: `UPDATE jobs SET claimed = 1, due_at = ?4, attempts = attempts + 1, revision = ?3 + 1
      WHERE tenant = ?1 AND id = ?2 AND revision = ?3`,
    params: ['id', 'id', 'integer', 'integer'],
    refuses: 'if-nothing-changed',
    conflict: 'job-changed',
  },

  updateJob: {
    sql: `UPDATE jobs SET ${CHANGING.map((it, n) => `${it} = ?${n + 3}`).join(', ')}
      WHERE tenant = ?1 AND id = ?2 AND revision = ?${COLUMNS.indexOf('revision') + 1} - 1`,
    params: Object.values(JOB).slice(0, -2),
    refuses: 'if-nothing-changed',
    conflict: 'job-changed',
  },

  deleteJob: {
    sql: 'DELETE FROM jobs WHERE tenant = ? AND id = ? AND revision = ?',
    params: ['id', 'id', 'integer'],
    refuses: 'if-nothing-changed',
    conflict: 'job-changed',
  },

  putCallbackSecrets: {
    sql: `INSERT INTO callback_secrets (tenant, secrets, revision)
      SELECT ?1, ?2, ?3 WHERE ?3 = 0 OR EXISTS (SELECT 1 FROM callback_secrets WHERE tenant = ?1)
      ON CONFLICT (tenant) DO UPDATE SET secrets = ?2, revision = ?3 WHERE revision = ?3 - 1`,
    params: ['id', 'bytes', 'integer'],
    refuses: 'if-nothing-changed',
    conflict: 'callback-secrets-changed',
  },
} as const satisfies Record<string, Statement>
