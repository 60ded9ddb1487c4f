import { mkdtempSync, rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { openReadable } from '../../../../test/model/entity-stores.ts'
import { reusing, type Open } from '../../../ports/store-kit.contract.ts'
import { storeContract } from '../../../ports/store.contract.ts'
import { SqliteStore } from './store.ts'

const folders: string[] = []
after(() => {
  for (const folder of folders) rmSync(folder, { recursive: true })
})

const entities = { open: () => openReadable('sqlite'), sequences: 40 }

storeContract('sqlite', () => SqliteStore.open({ folder: newFolder() }), entities, reuse)

/** A start of the writer thread costs more than most tests. */
function reuse(): Open {
  const folder = newFolder()
  return reusing(
    () => SqliteStore.open({ folder }),
    async () => deleteRows(join(folder, 'symbolon.db')),
  )
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'symbolon-'))
  folders.push(folder)
  return folder
}

/** Deletes every row, except those of a new database. */
function deleteRows(databasePath: string): void {
  const db = new DatabaseSync(databasePath, { enableForeignKeyConstraints: false })
  // Triggers of units and tokens write to token_counts and token_blocks, which come later in this order.
  const tables = db.prepare(
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'pulse' ORDER BY name DESC",
  )
  const deletions = tables.all().map(({ name }) => `DELETE FROM "${String(name)}";`)
  db.exec(`BEGIN IMMEDIATE; ${deletions.join(' ')} COMMIT`)
  db.close()
}
