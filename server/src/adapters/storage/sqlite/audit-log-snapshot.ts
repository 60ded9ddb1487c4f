import { join } from 'node:path'
import type { Store } from '../../../ports/store.ts'
import { accessRowReader } from './access-rows.ts'
import { openConnection } from './connection.ts'
import { requireDatabase } from './data-folder.ts'
import { auditLogReader } from './audit-log-reader.ts'
import { tenantReader } from './tenant-reader.ts'
import { UnusableDatabase } from './unusable-database.ts'

/** The audit log and the tenants as of one moment, for checking. */
export interface SqliteAuditLogSnapshot extends Pick<Store, 'tenants' | 'auditLog' | 'accessRows'> {
  readonly close: () => void
}

const CACHE_KIB = 8 * 1024

/**
 * Opens the audit log in `folder` for reading, beside a running service.
 *
 * All reads see the same snapshot, whatever is written meanwhile. Throws if there is no database,
 * or one from a version without an audit log.
 */
export function openSqliteAuditLog(folder: string): SqliteAuditLogSnapshot {
  requireDatabase(folder)
  const path = join(folder, 'symbolon.db')
  const db = openConnection(path, { readOnly: true, cacheKiB: CACHE_KIB })
  try {
    const tables = db.prepare('SELECT name FROM sqlite_schema').all()
    if (tables.length === 0) {
      throw new Error(
        `Cannot read ${folder}: its first start did not finish; start the service once`,
      )
    }
    if (!tables.some((it) => it['name'] === 'record_heads')) {
      throw new Error(
        `Cannot read ${folder}: its database is of a program that kept no audit log; ` +
          'start this program on it once',
      )
    }
    db.exec('BEGIN')
    return {
      tenants: tenantReader(db),
      auditLog: auditLogReader(db),
      accessRows: accessRowReader(db),
      close: () => db.close(),
    }
  } catch (error) {
    db.close()
    throw UnusableDatabase.or(error, path)
  }
}
