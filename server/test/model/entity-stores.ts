/** Stores whose tables can be read row by row, for the model of the described entities. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { connectionSettings } from '../../src/adapters/storage/postgres/connection-settings.ts'
import { connectedTo } from '../../src/adapters/storage/postgres/connection.ts'
import { Session } from '../../src/adapters/storage/postgres/session.ts'
import { vaultReader as postgresReader } from '../../src/adapters/storage/postgres/vault-reader.ts'
import { SqliteStore } from '../../src/adapters/storage/sqlite/store.ts'
import { vaultReader as sqliteReader } from '../../src/adapters/storage/sqlite/vault-reader.ts'
import type { Store } from '../../src/ports/store.ts'
import { ENTITIES, ENTITY_NAMES } from '../../src/ports/store/entities.ts'
import type { ColumnKind } from '../../src/ports/store/entity.ts'
import { columnsOf, memberOf } from '../../src/ports/store/entity-columns.ts'
import type { VaultReader, VaultRow, VaultValue } from '../../src/ports/vault-tables.ts'
import { MemoryStore } from '../kit/memory-store/memory-store.ts'
import { openPatiently } from '../kit/postgres/patient-store.ts'
import { freshDatabase } from '../kit/postgres/test-database.ts'
import type { StoreName } from '../kit/test-store.ts'

export interface ReadableStore {
  readonly store: Store
  /** Reads the tables of described entities beside the store. */
  readonly reader: VaultReader
  readonly close: () => Promise<void>
}

const OPENERS: Readonly<Record<StoreName, () => Promise<ReadableStore>>> = {
  memory: async () => {
    const store = new MemoryStore()
    return { store, reader: memoryReader(store), close: () => store.close() }
  },

  sqlite: async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'symbolon-entities-'))
    const store = await SqliteStore.open({ folder })
    const db = new DatabaseSync(path.join(folder, 'symbolon.db'), { readOnly: true })
    return {
      store,
      reader: sqliteReader(db),
      close: async () => {
        db.close()
        await store.close()
        rmSync(folder, { recursive: true })
      },
    }
  },

  postgres: async () => {
    const url = await freshDatabase()
    const store = await openPatiently(url)
    const client = await connectedTo(connectionSettings(url))
    return {
      store,
      reader: postgresReader(new Session(client).ask),
      close: async () => {
        await client.end()
        await store.close()
      },
    }
  },
}

/** Opens an empty store. */
export async function openReadable(name: StoreName): Promise<ReadableStore> {
  return await OPENERS[name]()
}

function memoryReader(store: MemoryStore): VaultReader {
  return {
    readChunk: async (table, after) => {
      const name = ENTITY_NAMES.find((it) => ENTITIES[it].table === table)
      if (name === undefined || after !== null) return { rows: [], last: null }
      const rows = store.rowsOf(name).map(([tenantId, row]): VaultRow => {
        const values = columnsOf(name).map((it) => packed(it.kind, memberOf(row, it)))
        // A tenant's own id is the first column of its table.
        return name === 'tenant' ? values : [tenantId, ...values]
      })
      return { rows, last: null }
    },
  }
}

function packed(kind: ColumnKind, value: unknown): VaultValue {
  return kind === 'json' && value !== null ? JSON.stringify(value) : (value as VaultValue)
}
