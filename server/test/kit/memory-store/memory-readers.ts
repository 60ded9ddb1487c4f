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
  ProxyReader,
  SessionReader,
} from '../../../src/ports/store.ts'
import type { StoredApplication, StoredReactor, StoredTenant } from '../../../src/ports/stored.ts'
import type { MemoryEntities } from './memory-entities.ts'
import { byAge, copyOf, newestFirst, pageOf } from './memory-table.ts'

type TenantOf = (id: string) => StoredTenant | null

export function applicationReader(entities: MemoryEntities, tenantOf: TenantOf): ApplicationReader {
  const applications = entities.table('application')
  return {
    find: async (tenantId, id) => copyOf(applications.find(tenantId, id)),

    list: async (tenantId, { ids, types, now }, request) => {
      const matching = applications
        .all(tenantId)
        .filter((it) => isLive(it, now))
        .filter((it) => ids?.includes(it.id) ?? true)
        .filter((it) => types?.includes(it.type) ?? true)
        .sort(newestFirst)
      return pageOf(matching, request)
    },

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

export function definitionReader(
  entities: MemoryEntities,
  name: 'proxy' | 'reactor',
): EntityReader<StoredReactor> {
  const table = entities.table(name)
  return {
    find: async (tenantId, id) => copyOf<StoredReactor | null>(table.find(tenantId, id)),

    list: async (tenantId, filter, request) => {
      const isWanted = namePattern(filter.name ?? '')
      const matching = table
        .all(tenantId)
        .filter((it) => filter.ids?.includes(it.id) ?? true)
        .filter((it) => isWanted(it.name))
        .sort(newestFirst)
      return pageOf<StoredReactor>(matching, request)
    },
  }
}

export function proxyReader(entities: MemoryEntities, tenantOf: TenantOf): ProxyReader {
  return {
    ...(definitionReader(entities, 'proxy') as ProxyReader),
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

function isLive({ expiresAt }: StoredApplication, now: number): boolean {
  return expiresAt === null || expiresAt > now
}
