import { missingAccessState } from '../../../src/ports/access-state.ts'
import { RetiredKeys } from '../../../src/ports/retired-keys.ts'
import type { Change, Conflict } from '../../../src/ports/change.ts'
import type {
  AccessRowReader,
  AnswerReader,
  ApplicationReader,
  EntityReaders,
  ProxyReader,
  AuditLogReader,
  SessionReader,
  Store,
  TenantReader,
  TokenReader,
  TransactionReader,
} from '../../../src/ports/store.ts'
import type { StoredTenant } from '../../../src/ports/stored.ts'
import type { EntityName } from '../../../src/ports/store/entities.ts'
import { MemoryEntities } from './memory-entities.ts'
import { envelopesIn, renewIn, type MemoryEnvelope } from './memory-envelopes.ts'
import { isOfKeys, MemoryKeys } from './memory-keys.ts'
import { claimJob, jobReader } from './memory-jobs.ts'
import {
  accessRowReader,
  applicationReader,
  entityReaders,
  proxyReader,
  sessionReader,
  works,
} from './memory-readers.ts'
import { MemoryAuditLog } from './memory-audit-log.ts'
import { MemoryTokens } from './memory-tokens.ts'
import { MemoryTable, copyOf } from './memory-table.ts'

/**
 * Implements every promise of a store in maps: the reference for other adapters, and the default in tests.
 *
 * A commit is applied change by change; a conflict reverts the changes applied so far. Values are copied on the way
 * in and out. Durable only for the life of the process.
 */
export class MemoryStore implements Store {
  readonly #undo: (() => void)[] = []
  readonly #entities = new MemoryEntities(this.#undo)
  readonly #keys = new MemoryKeys(this.#undo, this.#entities)
  readonly #tokens = new MemoryTokens(this.#undo)
  readonly #deletedTenants = new MemoryTable<number>(this.#undo)
  readonly #auditLog = new MemoryAuditLog(this.#undo)
  readonly #retiredKeys = new RetiredKeys()
  #closed = false

  readonly tenants: TenantReader = {
    find: async (tenantId) => copyOf(this.#tenantOf(tenantId)),
    named: async (name) => copyOf(this.#tenantsNamed(name)),
    ids: async () => this.#tenantsThere().map((it) => it.id),
    count: async () => this.#tenantsThere().length,
    rootKeyCheck: async () => copyOf(this.#keys.rootKey),
    keys: async (tenantId) => copyOf(this.#keys.of(tenantId)),
    envelopes: async (tenantId, stretch) => copyOf(envelopesIn(this.#sealed(tenantId), stretch)),
    notices: async () => this.#keys.notices(),
    deleted: async () =>
      [...this.#deletedTenants.everywhere()].map(([id, deletedAt]) => {
        return { id, deletedAt, empty: this.#belongings().every((it) => it.keys(id).length === 0) }
      }),
  }

  readonly applications: ApplicationReader = applicationReader(this.#entities, (id) =>
    this.#tenantOf(id),
  )

  readonly sessions: SessionReader = sessionReader(this.#entities, (id) => this.#tenantOf(id))

  readonly tokens: TokenReader = this.#tokens.reader

  readonly transactions: TransactionReader = this.#tokens.transactions

  readonly answers: AnswerReader = {
    find: async (tenantId, id, now) => {
      const answer = this.#entities.table('answer').find(tenantId, id)
      return answer !== null && answer.expiresAt > now ? copyOf(answer) : null
    },
  }

  readonly proxies: ProxyReader = proxyReader(this.#entities, (id) => this.#tenantOf(id))
  readonly rows: EntityReaders = entityReaders(this.#entities)
  readonly jobs = jobReader(this.#entities, (id) => this.#tenantOf(id) !== null)
  readonly auditLog: AuditLogReader = this.#auditLog.reader
  readonly accessRows: AccessRowReader = accessRowReader(this.#entities)

  async commit(tenantId: string, changes: readonly Change[]): Promise<Conflict | null> {
    if (this.#closed) throw new Error('Cannot commit: the store is closed')
    this.#undo.length = 0
    const refusal = missingAccessState(changes) ?? this.#retiredKeys.refusal(tenantId, changes)
    if (refusal !== null) throw refusal
    const enlisted = changes.find((it) => it.kind === 'enlist')
    try {
      for (const change of copyOf(changes)) {
        const conflict = this.#apply(tenantId, change, enlisted?.transactionId ?? '')
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

  async sweep(now: number): Promise<boolean> {
    this.#tokens.sweep(now)
    const answers = this.#entities.table('answer')
    for (const [tenantId, { id, expiresAt }] of answers.everywhere()) {
      if (expiresAt <= now) answers.delete(tenantId, id)
    }
    this.#auditLog.keepParked(
      (tenantId, id) => this.#tokens.findTransaction(tenantId, id)?.state === 'open',
    )
    this.#undo.length = 0
    return false
  }

  /** Returns the rows of an entity, each with its tenant. */
  rowsOf(name: EntityName): [tenantId: string, row: object][] {
    return [...this.#entities.table(name).everywhere()]
  }

  /** Nothing can put the maps back. */
  async lostTips(): Promise<[]> {
    return []
  }

  async check(): Promise<void> {
    if (this.#closed) throw new Error('Cannot read or write: the store is closed')
  }

  async close(): Promise<void> {
    this.#closed = true
  }

  /** `within` is the transaction of the commit; empty for none. */
  #apply(tenantId: string, change: Change, within: string): Conflict | null {
    if (isOfKeys(change)) return this.#keys.apply(tenantId, change)
    switch (change.kind) {
      case 'install':
        return this.#keys.install(change.rootKey)

      case 'insert-tenant': {
        const { tenant, keys } = change
        const known = this.#tenantOf(tenant.id) !== null
        if (known || this.#tenantsNamed(tenant.name).length > 0) return { kind: 'tenant-taken' }
        this.#entities.table('tenant').put(tenant.id, '', tenant)
        for (const row of keys) {
          this.#entities.apply(tenant.id, { kind: 'insert', entity: 'tenant_key', row })
        }
        return null
      }

      case 'put-access-state':
        return this.#auditLog.putAccess(tenantId, change.before, change.state)

      case 'leave-access-state':
        return null

      case 'insert':
      case 'update':
      case 'delete':
        return this.#entities.apply(tenantId, change)

      case 'claim-job':
        return claimJob(this.#entities, tenantId, change)

      case 'insert-tokens':
        for (const token of change.tokens) {
          const conflict = this.#tokens.insert(tenantId, token, within)
          if (conflict !== null) return conflict
        }
        return null

      case 'remember-answer': {
        const { answer, now } = change
        const answers = this.#entities.table('answer')
        const remembered = answers.find(tenantId, answer.id)
        if (remembered !== null && remembered.expiresAt > now) return { kind: 'answer-taken' }
        answers.put(tenantId, answer.id, answer)
        return null
      }

      case 'enlist':
        return this.#tokens.enlist(tenantId, change)

      case 'update-token':
        return this.#tokens.update(tenantId, change, within)

      case 'delete-token':
        return this.#tokens.remove(tenantId, change, within)

      case 'open-transaction':
        return this.#tokens.open(tenantId, change)

      case 'end-transaction': {
        const writers = this.#tokens.writersIn(tenantId, change.id)
        const conflict = this.#tokens.end(tenantId, change)
        if (conflict !== null || change.as !== 'committed') return conflict
        const allWork = writers.every((it) => works(this.#entities, tenantId, it, change.now))
        return allWork ? null : { kind: 'transaction-revoked' }
      }

      case 'append-audit-events':
      case 'park-audit-events':
      case 'end-parked-audit-events':
      case 'trim-audit-log':
      case 'put-audit-checkpoint':
        return this.#auditLog.apply(tenantId, change)

      case 'delete-tenant':
        if (this.#tenantOf(tenantId) === null) return { kind: 'absent' }
        this.#entities.forgetTenant(tenantId)
        this.#deletedTenants.put(tenantId, tenantId, change.at)
        return null

      case 'clear-tenant': {
        const deletedAt = this.#deletedTenants.find(tenantId, tenantId)
        if (deletedAt === null) return null
        for (const table of this.#belongings()) {
          for (const key of table.keys(tenantId)) table.delete(tenantId, key)
        }
        if (deletedAt < change.deletedBefore) this.#deletedTenants.delete(tenantId, tenantId)
        return null
      }

      case 'renew-envelopes':
        renewIn(() => this.#sealed(tenantId), change.envelopes)
        return null

      case 'authorize-session': {
        const { id, authorization, expiresAt, proof, now } = change
        const sessions = this.#entities.table('session')
        const session = sessions.find(tenantId, id)
        if (session === null || session.authorization !== null || session.expiresAt <= now) {
          return { kind: 'absent' }
        }
        sessions.put(tenantId, id, { ...session, authorization, expiresAt, proof })
        return null
      }

      case 'prove-session': {
        const { id, before, proof } = change
        const sessions = this.#entities.table('session')
        const session = sessions.find(tenantId, id)
        if (session !== null && isSameProof(session.proof, before)) {
          sessions.put(tenantId, id, { ...session, proof })
        }
        return null
      }

      default:
        throw new TypeError('Cannot commit: a change is of no known kind', {
          cause: change satisfies never,
        })
    }
  }

  /** Returns every envelope of the tenant. */
  #sealed(tenantId: string): MemoryEnvelope[] {
    return [...this.#tokens.sealed(tenantId), ...this.#entities.sealed(tenantId)]
  }

  /** Returns the tables in which a deleted tenant leaves rows. */
  #belongings(): MemoryTable<unknown>[] {
    return [
      ...this.#entities.belongings(),
      ...this.#tokens.belongings(),
      ...this.#auditLog.belongings(),
    ]
  }

  #tenantOf(id: string): StoredTenant | null {
    return this.#entities.table('tenant').find(id, '')
  }

  #tenantsNamed(name: string): StoredTenant[] {
    return this.#tenantsThere().filter((it) => it.name === name)
  }

  #tenantsThere(): StoredTenant[] {
    return [...this.#entities.table('tenant').everywhere()].map(([, it]) => it)
  }

  #undoAll(): void {
    for (const undo of this.#undo.toReversed()) undo()
    this.#undo.length = 0
  }
}

function isSameProof(a: Uint8Array | null, b: Uint8Array | null): boolean {
  return a === null || b === null ? a === b : Buffer.compare(a, b) === 0
}
