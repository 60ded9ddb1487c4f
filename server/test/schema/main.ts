/** Writes schema.sql of both databases, as their migrations make it. A part of `npm run sql`. */
import { writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import * as sqlite from '../../src/adapters/storage/sqlite/migrate.ts'
import { atLeisure } from '../../src/adapters/storage/postgres/connection.ts'
import { connectionSettings } from '../../src/adapters/storage/postgres/connection-settings.ts'
import * as postgres from '../../src/adapters/storage/postgres/migrate.ts'
import { startCluster } from '../kit/postgres/cluster.ts'

const FOLDER = new URL('../../src/adapters/storage/', import.meta.url)

const db = new DatabaseSync(':memory:')
sqlite.migrate(db)
writeFileSync(new URL('sqlite/schema.sql', FOLDER), sqlite.schemaOf(db))
db.close()

const cluster = await startCluster()
try {
  const settings = connectionSettings(cluster.url)
  await atLeisure(settings, postgres.migrate)
  const schema = await atLeisure(settings, postgres.schemaOf)
  writeFileSync(new URL('postgres/schema.sql', FOLDER), schema)
} finally {
  await cluster.stop()
}
