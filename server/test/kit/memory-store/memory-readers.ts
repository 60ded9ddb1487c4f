/** Readers over the rows of entities: a part of the memory store. */
import type { KeyReference } from '../../../src/base/access.ts'
import { namePattern } from '../../../src/base/name-pattern.ts'
import {
  applicationKeyStatement,
  applicationStatement,
  sessionStatement,
  type AccessTable,
} from '../../../src/ports/access-state.ts'
import type {
  AccessRowReader,
  ApplicationReader,
  EntityReader,
  EntityFilter,
  EntityReaders,
  Page,
  ProxyReader,
  SessionReader,
} from '../../../src/ports/store.ts'
import type { StoredApplication, StoredTenant } from '../../../src/ports/stored.ts'
import { LISTED_NAMES, type ListedName, type StoredOf } from '../../../src/ports/store/entities.ts'
import type { MemoryEntities } from './memory-entities.ts'
import { byAge, copyOf, newestFirst, pageOf } from './memory-table.ts'

type TenantOf = (id: string) => StoredTenant | null

export function entityReaders(entities: MemoryEntities): EntityReaders {
  const readers = new Map(LISTED_NAMES.map((it) => [it, entityReader(entities, it)]))
  return ((entity) => readers.get(entity)) as EntityReaders
}

type ListedRow = { readonly id: string; readonly createdAt: number } & Readonly<
  Record<'name' | 'type' | 'expiresAt', string | number | null>
>

function entityReader<Name extends ListedName>(
  entities: MemoryEntities,
  name: Name,
): EntityReader<StoredOf<Name>, EntityFilter> {
  const table = entities.table(name)
  return {
    find: async (tenantId, id) => copyOf(table.find(tenantId, id)),

    list: async (tenantId, { ids, name: pattern = '', types, now }, request) => {
      const isWanted = namePattern(pattern)
      const matching = (table.all(tenantId) as unknown as ListedRow[])
        .filter((it) => ids?.includes(it.id) ?? true)
        .filter((it) => pattern === '' || isWanted(String(it.name)))
        .filter((it) => types?.includes(String(it.type)) ?? true)
        .filter((it) => now === undefined || isLive(it, now))
        .sort(newestFirst)
      return pageOf(matching, request) as unknown as Page<StoredOf<Name>>
    },
  }
}

export function applicationReader(entities: MemoryEntities, tenantOf: TenantOf): ApplicationReader {
  const applications = entities.table('application')
  return {
    ...entityReader(entities, 'application'),

    keys: async (tenantId, applicationId) => {
      const keys = entities.table('application_key').all(tenantId)
      return copyOf(keys.filter((it) => it.applicationId === applicationId)).sort(byAge)
    },

    findByKeyHash: async (hash) => {
      const found = entities.hashed('application_key', hash)
      if (found === null) return null
      const [tenantId, key] = found
      const [tenant, application] = [
        tenantOf(tenantId),
        applications.find(tenantId, key.applicationId),
      ]
      if (tenant === null || application === null) return null
      return copyOf({ tenant, application, keyId: key.id })
    },
  }
}

export function sessionReader(entities: MemoryEntities, tenantOf: TenantOf): SessionReader {
  return {
    findByKeyHash: async (hash) => {
      const found = entities.hashed('session', hash)
      if (found === null) return null
      const [tenantId, session] = found
      const [tenant, application] = [tenantOf(tenantId), withKey(entities, tenantId, session)]
      if (tenant === null || application === null) return null
      const { authorization } = session
      if (authorization === null) return copyOf({ tenant, application, session, authorizer: null })
      const authorizer = withKey(entities, tenantId, authorization)
      return authorizer === null ? null : copyOf({ tenant, application, session, authorizer })
    },

    findByNonce: async (tenantId, nonceHash, now) => {
      const sessions = entities.table('session').all(tenantId)
      const session = sessions.find((it) => Buffer.compare(it.nonceHash, nonceHash) === 0)
      if (session === undefined || session.expiresAt <= now) return null
      return withKey(entities, tenantId, session) === null ? null : copyOf(session)
    },
  }
}

export function proxyReader(entities: MemoryEntities, tenantOf: TenantOf): ProxyReader {
  return {
    ...entityReader(entities, 'proxy'),
    findByKeyHash: async (hash) => {
      const [tenantId, proxy] = entities.hashed('proxy', hash) ?? []
      const tenant = tenantId === undefined ? null : tenantOf(tenantId)
      return proxy === undefined || tenant === null ? null : copyOf({ tenant, proxy })
    },
  }
}

export function accessRowReader(entities: MemoryEntities): AccessRowReader {
  return async function* (tenantId: string, table: AccessTable) {
    if (table === 'applications') {
      const rows = entities.table('application').all(tenantId)
      yield rows.map((it) => ({
        id: it.id,
        statement: applicationStatement(tenantId, it),
        proof: null,
      }))
    } else if (table === 'application_keys') {
      const rows = entities.table('application_key').all(tenantId)
      yield rows.map((it) => {
        return { id: it.id, statement: applicationKeyStatement(tenantId, it), proof: null }
      })
    } else {
      const rows = entities.table('session').all(tenantId)
      yield rows.map((it) => {
        return { id: it.id, statement: sessionStatement(tenantId, it), proof: copyOf(it.proof) }
      })
    }
  }
}

/** Whether the key, or the application itself, may still be used at `now`. */
export function works(
  entities: MemoryEntities,
  tenantId: string,
  { applicationId, keyId }: KeyReference,
  now: number,
): boolean {
  const application =
    keyId === null
      ? entities.table('application').find(tenantId, applicationId)
      : withKey(entities, tenantId, { applicationId, keyId })
  return application !== null && isLive(application, now)
}

/** Returns the application if it still has the key. */
function withKey(
  entities: MemoryEntities,
  tenantId: string,
  { applicationId, keyId }: { readonly applicationId: string; readonly keyId: string },
): StoredApplication | null {
  const key = entities.table('application_key').find(tenantId, `${applicationId} ${keyId}`)
  return key === null ? null : entities.table('application').find(tenantId, applicationId)
}

function isLive({ expiresAt }: Pick<ListedRow, 'expiresAt'>, now: number): boolean {
  return expiresAt === null || Number(expiresAt) > now
}
