import { readdirSync, readFileSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { metadataIndexTerm, indexTermsOf } from '../../../ports/index-terms.ts'
import { packIndexes, unpackIndexes } from '../../../ports/packed-token.ts'
import { refuseNewerSchema, requireSchema } from '../../../ports/schema-version.ts'

const FOLDER = new URL('./migrations/', import.meta.url)

/**
 * Migrates the database to this program's version, all the way or not at all.
 *
 * Throws if the database is newer than the program: an old program cannot know what it would break.
 */
export function migrate(db: DatabaseSync): void {
  const steps = migrations()
  // For migrations that SQL alone cannot express.
  db.function('metadata_term', { deterministic: true }, (key, value) =>
    metadataIndexTerm(String(key), String(value)),
  )
  db.function('indexes_with_terms', { deterministic: true }, (indexes, metadata) =>
    packIndexes(
      indexTermsOf({
        indexes: indexes instanceof Uint8Array ? unpackIndexes(indexes) : [],
        metadata: JSON.parse(String(metadata)),
      }),
    ),
  )
  db.exec('BEGIN IMMEDIATE')
  try {
    const version = versionOf(db)
    refuseNewerSchema(version, steps.length)
    for (const name of steps.slice(version)) db.exec(readFileSync(new URL(name, FOLDER), 'utf8'))
    db.exec(`PRAGMA user_version = ${steps.length}`)
    db.exec('COMMIT')
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}

/** Whether a start of this program would migrate the database. */
export function isOlderSchema(db: DatabaseSync): boolean {
  return versionOf(db) < migrations().length
}

/** Throws unless the database is at this program's version. For callers that must not migrate it. */
export function requireCurrentSchema(db: DatabaseSync): void {
  requireSchema(versionOf(db), migrations().length)
}

/** Returns the names of the migrations, in their order. */
export function migrations(): string[] {
  return readdirSync(FOLDER)
    .filter((name) => name.endsWith('.sql'))
    .sort()
}

/** Returns every statement that creates the database as it is: the content of schema.sql. */
export function schemaOf(db: DatabaseSync): string {
  const statements = db
    .prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'")
    .all()
    .map((row) => `${String(row.sql)};\n`)
  return [`-- Version ${versionOf(db)}\n`, ...statements].join('\n')
}

function versionOf(db: DatabaseSync): number {
  return Number(db.prepare('PRAGMA user_version').get()?.user_version)
}
