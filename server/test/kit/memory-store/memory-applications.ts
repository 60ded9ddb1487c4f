import type { KeyReference } from '../../../src/base/access.ts'
import {
  applicationKeyStatement,
  applicationStatement,
  type AccessRow,
  type AccessTable,
} from '../../../src/ports/access-state.ts'
import type { ChangeOf, Conflict } from '../../../src/ports/change.ts'
import type { ApplicationReader } from '../../../src/ports/store.ts'
import type {
  StoredApplication,
  StoredApplicationKey,
  StoredTenant,
} from '../../../src/ports/stored.ts'
import { MemoryTable, byAge, copyOf, newestFirst, pageOf } from './memory-table.ts'

/** Applications and their keys. */
export class MemoryApplications {
  readonly #applications: MemoryTable<StoredApplication>
  readonly #keys: MemoryTable<StoredApplicationKey>
  readonly #tenant: (id: string) => StoredTenant | null

  constructor(undo: (() => void)[], tenant: (id: string) => StoredTenant | null) {
    this.#applications = new MemoryTable(undo)
    this.#keys = new MemoryTable(undo)
    this.#tenant = tenant
  }

  readonly reader: ApplicationReader = {
    find: async (tenantId, id) => copyOf(this.#applications.find(tenantId, id)),

    list: async (tenantId, { ids, types, now }, request) => {
      const matching = this.#applications
        .all(tenantId)
        .filter((it) => isLive(it, now))
        .filter((it) => ids?.includes(it.id) ?? true)
        .filter((it) => types?.includes(it.type) ?? true)
        .sort(newestFirst)
      return pageOf(matching, request)
    },

    keys: async (tenantId, applicationId) =>
      copyOf(this.#keysOf(tenantId, applicationId)).sort(byAge),

    findByKeyHash: async (hash) => {
      const held = this.#keyHashed(hash)
      if (held === null) return null
      const [tenantId, key] = held
      const tenant = this.#tenant(tenantId)
      const application = this.#applications.find(tenantId, key.applicationId)
      if (tenant === null || application === null) return null
      return copyOf({ tenant, application, keyId: key.id })
    },
  }

  /** Undefined for tables that are not here. */
  accessRows(tenantId: string, table: AccessTable): AsyncIterable<AccessRow[]> | undefined {
    if (table === 'sessions') return undefined
    const rows =
      table === 'applications'
        ? this.#applications.all(tenantId).map((it) => ({
            id: it.id,
            statement: applicationStatement(tenantId, it),
            proof: null,
          }))
        : this.#keys.all(tenantId).map((it) => ({
            id: it.id,
            statement: applicationKeyStatement(tenantId, it),
            proof: null,
          }))
    return (async function* () {
      yield rows
    })()
  }

  apply(
    tenantId: string,
    change: ChangeOf<
      | 'insert-application'
      | 'update-application'
      | 'delete-application'
      | 'insert-application-key'
      | 'delete-application-key'
    >,
  ): Conflict | null {
    switch (change.kind) {
      case 'insert-application': {
        const { application } = change
        if (this.#applications.find(tenantId, application.id) !== null) {
          throw new Error('Cannot insert an application: its id is taken')
        }
        this.#applications.put(tenantId, application.id, application)
        return null
      }

      case 'update-application': {
        const { application } = change
        if (this.#applications.find(tenantId, application.id) === null) return { kind: 'absent' }
        this.#applications.put(tenantId, application.id, application)
        return null
      }

      case 'delete-application':
        if (this.#applications.find(tenantId, change.id) === null) return { kind: 'absent' }
        this.#applications.delete(tenantId, change.id)
        for (const key of this.#keysOf(tenantId, change.id)) this.#keys.delete(tenantId, key.id)
        return null

      case 'insert-application-key': {
        const { key } = change
        if (this.#applications.find(tenantId, key.applicationId) === null) {
          return { kind: 'absent' }
        }
        if (this.#keys.find(tenantId, key.id) ?? this.#keyHashed(key.hash)) {
          throw new Error('Cannot insert an application key: its id or hash is taken')
        }
        this.#keys.put(tenantId, key.id, key)
        return null
      }

      case 'delete-application-key': {
        const key = this.#keys.find(tenantId, change.id)
        if (key?.applicationId !== change.applicationId) return { kind: 'absent' }
        this.#keys.delete(tenantId, change.id)
        return null
      }

      default:
        throw new TypeError('Cannot change an application: a change is of no known kind', {
          cause: change satisfies never,
        })
    }
  }

  /** Returns the application if it still has the key. */
  withKey(
    tenantId: string,
    { applicationId, keyId }: { readonly applicationId: string; readonly keyId: string },
  ): StoredApplication | null {
    const key = this.#keys.find(tenantId, keyId)
    if (key?.applicationId !== applicationId) return null
    return this.#applications.find(tenantId, applicationId)
  }

  /** Whether the key, or the application itself, may still be used at `now`. */
  works(tenantId: string, { applicationId, keyId }: KeyReference, now: number): boolean {
    const application =
      keyId === null
        ? this.#applications.find(tenantId, applicationId)
        : this.withKey(tenantId, { applicationId, keyId })
    return application !== null && isLive(application, now)
  }

  belongings(): MemoryTable<unknown>[] {
    return [this.#applications, this.#keys]
  }

  #keysOf(tenantId: string, applicationId: string): StoredApplicationKey[] {
    return this.#keys.all(tenantId).filter((it) => it.applicationId === applicationId)
  }

  #keyHashed(hash: Uint8Array): [tenantId: string, key: StoredApplicationKey] | null {
    for (const [tenantId, key] of this.#keys.everywhere()) {
      if (Buffer.compare(key.hash, hash) === 0) return [tenantId, key]
    }
    return null
  }
}

function isLive({ expiresAt }: StoredApplication, now: number): boolean {
  return expiresAt === null || expiresAt > now
}
