/** Statements for notices between the processes that use the store. */
import type { Statement } from './statements.ts'

export const NOTICE_TABLE = {
  putNotice: {
    sql: `INSERT INTO notices (id, notice, created_at) VALUES (?1, ?2, ?3)
      ON CONFLICT (id) DO UPDATE SET notice = excluded.notice, created_at = excluded.created_at`,
    params: ['id', 'text', 'integer'],
    refuses: 'never',
  },

  removeNotice: {
    sql: 'DELETE FROM notices WHERE id = ?',
    params: ['id'],
    refuses: 'never',
  },
} as const satisfies Record<string, Statement>
