import { IDEMPOTENCY_LIFETIME_MS } from '../../base/limits.ts'
import type { WrappedTenantKey } from '../../world/keyring.ts'
import type {
  AnswerReader,
  ApplicationReader,
  Change,
  Conflict,
  RootKeyCheck,
  SessionReader,
  Store,
  StoredAnswer,
  StoredApplication,
  StoredApplicationKey,
  StoredSession,
  StoredTenant,
  StoredToken,
  TenantReader,
  TokenReader,
  TokenUsage,
} from '../../world/store.ts'
import { Shelf, copyOf } from './shelves.ts'

/**
 * Every promise of a store kept in maps: the reference for other adapters, and the test default.
 *
 * A commit is applied change by change; a conflict undoes what was applied. Everything is copied on
 * the way in and on the way out. Durable for as long as the process lives, and no longer.
 */
export class MemoryStore implements Store {
  readonly #undo: (() => void)[] = []
  readonly #tenants = new Shelf<StoredTenant>(this.#undo)
  readonly #tenantKeys = new Shelf<readonly WrappedTenantKey[]>(this.#undo)
  readonly #applications = new Shelf<StoredApplication>(this.#undo)
  readonly #applicationKeys = new Shelf<StoredApplicationKey>(this.#undo)
  readonly #sessions = new Shelf<StoredSession>(this.#undo)
  readonly #deletedTenants = new Shelf<number>(this.#undo)
  /** By id and by serial, which are one namespace. */
  readonly #tokens = new Shelf<StoredToken>(this.#undo)
  readonly #twins = new Shelf<readonly StoredToken[]>(this.#undo)
  readonly #answers = new Shelf<StoredAnswer>(this.#undo)
  #rootKey: RootKeyCheck | null = null
  #closed = false

  readonly tenants: TenantReader = {
    find: async (tenantId) => copyOf(this.#tenants.find(tenantId, tenantId)),
    findByName: async (name) => copyOf(this.#tenantNamed(name)),
    count: async () => [...this.#tenants.everywhere()].length,
    rootKeyCheck: async () => copyOf(this.#rootKey),
    keys: async (tenantId) => copyOf(this.#tenantKeys.all(tenantId).flat()),
    deleted: async () =>
      [...this.#deletedTenants.everywhere()].map(([id, deletedAt]) => {
        return { id, deletedAt, empty: this.#belongings().every((it) => it.keys(id).length === 0) }
      }),
  }

  readonly applications: ApplicationReader = {
    find: async (tenantId, id) => copyOf(this.#applications.find(tenantId, id)),

    list: async (tenantId, { ids, types }, { page, size }) => {
      const matching = this.#applications
        .all(tenantId)
        .filter((it) => ids?.includes(it.id) ?? true)
        .filter((it) => types?.includes(it.type) ?? true)
        .sort((a, b) => b.createdAt - a.createdAt || compare(b.id, a.id))
      const items = matching.slice((page - 1) * size, page * size)
      return { total: matching.length, items: copyOf(items) }
    },

    keys: async (tenantId, applicationId) =>
      copyOf(this.#keysOf(tenantId, applicationId)).sort(
        (a, b) => a.createdAt - b.createdAt || compare(a.id, b.id),
      ),

    findByKeyHash: async (hash) => {
      const held = this.#keyHashed(hash)
      if (held === null) return null
      const [tenantId, key] = held
      const tenant = this.#tenants.find(tenantId, tenantId)
      const application = this.#applications.find(tenantId, key.applicationId)
      if (tenant === null || application === null) return null
      return copyOf({ tenant, application, keyId: key.id })
    },
  }

  readonly sessions: SessionReader = {
    findByKeyHash: async (hash) => {
      for (const [tenantId, session] of this.#sessions.everywhere()) {
        if (Buffer.compare(session.hash, hash) !== 0) continue
        const tenant = this.#tenants.find(tenantId, tenantId)
        const application = this.#withKey(tenantId, session)
        if (tenant === null || application === null) return null
        const { authorization } = session
        if (authorization === null) {
          return copyOf({ tenant, application, session, authorizer: null })
        }
        const authorizer = this.#withKey(tenantId, authorization)
        return authorizer === null ? null : copyOf({ tenant, application, session, authorizer })
      }
      return null
    },

    findByNonce: async (tenantId, nonceHash, now) => {
      const session = this.#sessions
        .all(tenantId)
        .find((it) => Buffer.compare(it.nonceHash, nonceHash) === 0)
      if (session === undefined || session.expiresAt <= now) return null
      return this.#withKey(tenantId, session) === null ? null : copyOf(session)
    },
  }

  readonly tokens: TokenReader = {
    find: async (tenantId, ids) => {
      const found = [...new Set(ids)].map((id) => [id, this.#tokens.find(tenantId, id)] as const)
      // A token found by its serial alone is not known by that name.
      return found.flatMap(([id, token]) => (token?.id === id ? [copyOf(token)] : []))
    },

    findByFingerprint: async (tenantId, type, fingerprint, now) =>
      copyOf(this.#oldestTwin(tenantId, type, fingerprint, now)),

    usage: async (tenantId, { now, since }) => {
      const live = [...new Set(this.#tokens.all(tenantId))].filter(
        (it) => it.expiresAt === null || it.expiresAt > now,
      )
      const types = [...new Set(live.map((it) => it.type))].sort()
      return types.map((type): TokenUsage => {
        const own = live.filter((it) => it.type === type)
        return {
          type,
          count: own.length,
          active: own.filter((it) => Math.max(it.createdAt, it.modifiedAt ?? 0) >= since).length,
          lastCreatedAt: own.reduce((last, it) => Math.max(last, it.createdAt), 0),
        }
      })
    },
  }

  readonly answers: AnswerReader = {
    find: async (tenantId, id, now) => {
      const answer = this.#answers.find(tenantId, id)
      return answer !== null && answer.expiresAt > now ? copyOf(answer) : null
    },
  }

  async commit(tenantId: string, changes: readonly Change[]): Promise<Conflict | null> {
    if (this.#closed) throw new Error('Cannot commit: the store is closed')
    this.#undo.length = 0
    try {
      for (const change of copyOf(changes)) {
        const conflict = this.#apply(tenantId, change)
        if (conflict === null) continue
        this.#undoAll()
        return conflict
      }
    } catch (error) {
      this.#undoAll()
      throw error
    }
    return null
  }

  async check(): Promise<void> {
    if (this.#closed) throw new Error('Cannot read or write: the store is closed')
  }

  async close(): Promise<void> {
    this.#closed = true
  }

  #apply(tenantId: string, change: Change): Conflict | null {
    switch (change.kind) {
      case 'install':
        if (this.#rootKey !== null) return { kind: 'installed' }
        this.#rootKey = change.rootKey
        this.#undo.push(() => (this.#rootKey = null))
        return null

      case 'insert-tenant': {
        const { tenant, keys } = change
        const taken = this.#tenants.find(tenant.id, tenant.id) ?? this.#tenantNamed(tenant.name)
        if (taken !== null) return { kind: 'tenant-taken' }
        this.#tenants.put(tenant.id, tenant.id, tenant)
        this.#tenantKeys.put(tenant.id, tenant.id, keys)
        return null
      }

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
        for (const key of this.#keysOf(tenantId, change.id)) {
          this.#applicationKeys.delete(tenantId, key.id)
        }
        return null

      case 'insert-application-key': {
        const { key } = change
        if (this.#applications.find(tenantId, key.applicationId) === null) {
          return { kind: 'absent' }
        }
        if (this.#applicationKeys.find(tenantId, key.id) ?? this.#keyHashed(key.hash)) {
          throw new Error('Cannot insert an application key: its id or hash is taken')
        }
        this.#applicationKeys.put(tenantId, key.id, key)
        return null
      }

      case 'delete-application-key': {
        const key = this.#applicationKeys.find(tenantId, change.id)
        if (key?.applicationId !== change.applicationId) return { kind: 'absent' }
        this.#applicationKeys.delete(tenantId, change.id)
        return null
      }

      case 'insert-tokens':
        for (const token of change.tokens) {
          const conflict = this.#insertToken(tenantId, token)
          if (conflict !== null) return conflict
        }
        return null

      case 'remember-answer': {
        const { answer } = change
        const madeAt = answer.expiresAt - IDEMPOTENCY_LIFETIME_MS
        const remembered = this.#answers.find(tenantId, answer.id)
        if (remembered !== null && remembered.expiresAt > madeAt) return { kind: 'answer-taken' }
        this.#answers.put(tenantId, answer.id, answer)
        return null
      }

      case 'update-tenant': {
        const { tenant } = change
        const before = this.#tenants.find(tenantId, tenantId)
        const named = this.#tenantNamed(tenant.name)
        if (named !== null && named.id !== tenantId) return { kind: 'tenant-taken' }
        if (before === null) return { kind: 'absent' }
        const { name, settings, modifiedBy, modifiedAt } = tenant
        const after = { ...before, name, settings, modifiedBy, modifiedAt }
        this.#tenants.put(tenantId, tenantId, after)
        return null
      }

      case 'delete-tenant':
        if (this.#tenants.find(tenantId, tenantId) === null) return { kind: 'absent' }
        this.#tenants.delete(tenantId, tenantId)
        this.#tenantKeys.delete(tenantId, tenantId)
        this.#deletedTenants.put(tenantId, tenantId, change.at)
        return null

      case 'clear-tenant': {
        const deletedAt = this.#deletedTenants.find(tenantId, tenantId)
        if (deletedAt === null) return null
        for (const shelf of this.#belongings()) {
          for (const key of shelf.keys(tenantId)) shelf.delete(tenantId, key)
        }
        if (deletedAt < change.deletedBefore) this.#deletedTenants.delete(tenantId, tenantId)
        return null
      }

      case 'insert-session': {
        const { session } = change
        if (this.#withKey(tenantId, session) === null) return { kind: 'absent' }
        for (const { id, expiresAt } of this.#sessions.all(tenantId)) {
          if (expiresAt <= session.createdAt) this.#sessions.delete(tenantId, id)
        }
        this.#sessions.put(tenantId, session.id, session)
        return null
      }

      case 'authorize-session': {
        const { id, authorization, expiresAt, now } = change
        const session = this.#sessions.find(tenantId, id)
        if (session === null || session.authorization !== null || session.expiresAt <= now) {
          return { kind: 'absent' }
        }
        this.#sessions.put(tenantId, id, { ...session, authorization, expiresAt })
        return null
      }

      default:
        throw new TypeError('Cannot commit: a change is of no known kind', {
          cause: change satisfies never,
        })
    }
  }

  /** What a deleted tenant leaves behind. */
  #belongings(): Shelf<unknown>[] {
    const entities = [this.#applications, this.#applicationKeys, this.#sessions, this.#answers]
    return [...entities, this.#tokens, this.#twins]
  }

  #insertToken(tenantId: string, token: StoredToken): Conflict | null {
    const { id, serial, type, fingerprint } = token
    if (token.deduplicate && fingerprint !== null) {
      const twin = this.#oldestTwin(tenantId, type, fingerprint, token.createdAt)
      if (twin !== null) return { kind: 'fingerprint-taken', type, fingerprint }
    }
    if (this.#tokens.find(tenantId, id) ?? this.#tokens.find(tenantId, serial)) {
      return { kind: 'token-id-taken', id }
    }
    if (fingerprint !== null) {
      const key = twinKey(type, fingerprint)
      this.#twins.put(tenantId, key, [...(this.#twins.find(tenantId, key) ?? []), token])
    }
    this.#tokens.put(tenantId, id, token)
    this.#tokens.put(tenantId, serial, token)
    return null
  }

  #oldestTwin(
    tenantId: string,
    type: string,
    fingerprint: string,
    now: number,
  ): StoredToken | null {
    const twins = this.#twins.find(tenantId, twinKey(type, fingerprint)) ?? []
    const live = twins.filter((it) => it.expiresAt === null || it.expiresAt > now)
    return live.toSorted((a, b) => compare(a.serial, b.serial))[0] ?? null
  }

  #tenantNamed(name: string): StoredTenant | null {
    for (const [, tenant] of this.#tenants.everywhere()) {
      if (tenant.name === name) return tenant
    }
    return null
  }

  #keysOf(tenantId: string, applicationId: string): StoredApplicationKey[] {
    return this.#applicationKeys.all(tenantId).filter((it) => it.applicationId === applicationId)
  }

  /** The application, if it still has the key. */
  #withKey(
    tenantId: string,
    { applicationId, keyId }: { readonly applicationId: string; readonly keyId: string },
  ): StoredApplication | null {
    const key = this.#applicationKeys.find(tenantId, keyId)
    if (key?.applicationId !== applicationId) return null
    return this.#applications.find(tenantId, applicationId)
  }

  #keyHashed(hash: Uint8Array): [tenantId: string, key: StoredApplicationKey] | null {
    for (const [tenantId, key] of this.#applicationKeys.everywhere()) {
      if (Buffer.compare(key.hash, hash) === 0) return [tenantId, key]
    }
    return null
  }

  #undoAll(): void {
    for (const undo of this.#undo.toReversed()) undo()
    this.#undo.length = 0
  }
}

function twinKey(type: string, fingerprint: string): string {
  return JSON.stringify([type, fingerprint])
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}
