/** Helpers that the parts of the store contract share: numbered entities and changes of them. */
import { DEFAULT_TENANT_SETTINGS } from '../base/access.ts'
import assert from 'node:assert/strict'
import { after, type TestContext } from 'node:test'
import type { KeyReference } from '../base/access.ts'
import { IDEMPOTENCY_LIFETIME_MS } from '../base/limits.ts'
import type { StoredJob } from './jobs.ts'
import type { WrappedTenantKey } from './keyring.ts'
import type { AuditEvent } from './audit-log.ts'
import type { Change, Conflict } from './change.ts'
import type { Store } from './store.ts'
import type {
  StoredAnswer,
  StoredApplication,
  StoredApplicationKey,
  StoredProxy,
  StoredReactor,
  StoredTenant,
  FoundToken,
  StoredToken,
  StoredTransaction,
} from './stored.ts'
import { withCommit } from './with-commit.ts'
import { missingAccessState } from './access-state.ts'

export type Open = () => Promise<Store>

/**
 * Returns an Open that opens one store and returns it every time, each time after `empty` has deleted its rows.
 *
 * For tests that use nothing that a store remembers beside its rows: retired keys, chain tips.
 */
export function reusing(open: Open, empty: () => Promise<void>): Open {
  let opened: Promise<Store> | null = null
  after(async () => (await opened)?.close())
  return async () => {
    if (opened !== null) await empty()
    const store = await (opened ??= open())
    const commit: Store['commit'] = (tenantId, changes) => store.commit(tenantId, changes)
    return { ...withCommit(store, commit), close: async () => {} }
  }
}

/** Opens a store and closes it after the test. Its commits that change applications or keys leave the access state as it is. */
export async function opened(t: TestContext, open: Open): Promise<Store> {
  const store = await open()
  t.after(() => store.close())
  return leavingAccessState(store)
}

/** Returns the store for tests of something else than access states. */
function leavingAccessState(store: Store): Store {
  return withCommit(store, (tenantId, changes) => store.commit(tenantId, leavingState(changes)))
}

function leavingState(changes: readonly Change[]): readonly Change[] {
  return missingAccessState(changes) === null ? changes : [...changes, LEFT_ACCESS_STATE]
}

const LEFT_ACCESS_STATE: Change = { kind: 'leave-access-state' }

export const NOW = Date.UTC(2026, 0, 1)

export const EXPIRES = NOW + IDEMPOTENCY_LIFETIME_MS

export const TENANT = uuid(1)

export const OTHER = uuid(0xffff)

export const FRESH = uuid(0xfffe)

export const KEYS: readonly WrappedTenantKey[] = [
  { purpose: 'enc', version: 1, wrapped: bytes(60), createdAt: NOW },
  { purpose: 'enc', version: 2, wrapped: bytes(61), createdAt: NOW + 1 },
  { purpose: 'fp', version: 1, wrapped: bytes(62), createdAt: NOW },
]

export async function succeed(
  store: Store,
  tenantId: string,
  changes: readonly Change[],
): Promise<void> {
  assert.equal(await store.commit(tenantId, leavingState(changes)), null)
}

export async function idsFound(
  store: Store,
  tenantId: string,
  numbers: number[],
): Promise<string[]> {
  const found = await store.tokens.find(tenantId, numbers.map(uuid))
  return found.map((it) => it.id)
}

/** One change of each kind, numbered `n`, the installation first. */
export function everything(n: number): Change[] {
  return [
    { kind: 'install', rootKey: { id: 'root', check: bytes(9) } },
    { kind: 'insert-tenant', tenant: tenant(n), keys: KEYS },
    { kind: 'insert', entity: 'application', row: application(n) },
    { kind: 'insert', entity: 'application_key', row: key(n, n) },
    { kind: 'insert', entity: 'proxy', row: proxy(n) },
    { kind: 'insert', entity: 'reactor', row: reactor(n) },
    { kind: 'insert', entity: 'job', row: job(n) },
    { kind: 'insert', entity: 'callback_secret', row: { secrets: bytes(n), revision: 0 } },
    insert(token(n, { fingerprint: `f ${n}` })),
    answer(n),
  ]
}

export function insert(...tokens: readonly StoredToken[]): Change {
  return { kind: 'insert-tokens', tokens }
}

/** An update to the next revision of `before`, with `own`. */
export function update(
  before: StoredToken,
  own: Partial<StoredToken> = {},
  { now = NOW, unlessDuplicate = false } = {},
): Extract<Change, { kind: 'update-token' }> {
  const token = { ...before, ...own, revision: before.revision + 1 }
  return { kind: 'update-token', token, unlessDuplicate, now }
}

export function remove(token: FoundToken, now = NOW): Change {
  return { kind: 'delete-token', token, now }
}

/** The transaction `n`, which ends at NOW + 1000. */
export function transaction(n: number): StoredTransaction {
  return {
    id: uuid(n),
    state: 'open',
    createdBy: uuid(99),
    createdAt: NOW,
    expiresAt: NOW + TRANSACTION_MS,
  }
}

export const TRANSACTION_MS = 1000

export function begin(n: number): Change {
  return { kind: 'open-transaction', transaction: transaction(n), openMax: 1_000 }
}

/** Makes a commit part of the transaction `n`, written with `keys`. */
export function enlist(n: number, now = NOW, keys: readonly KeyReference[] = []): Change {
  return { kind: 'enlist', transactionId: uuid(n), keys, now }
}

export function end(n: number, as: 'committed' | 'rolled_back' | 'expired', now = NOW): Change {
  return { kind: 'end-transaction', id: uuid(n), as, now }
}

export function answer(n: number): Change {
  return { kind: 'remember-answer', answer: stored(n), now: NOW }
}

export function stored(n: number): StoredAnswer {
  return { id: `answer ${n}`, status: 200, body: bytes(n), expiresAt: EXPIRES }
}

export function taken(id: string): Conflict {
  return { kind: 'token-id-taken', id }
}

export function tenant(n: number): StoredTenant {
  return {
    id: uuid(n),
    name: `tenant ${n}`,
    plan: 'enterprise',
    settings: { ...DEFAULT_TENANT_SETTINGS, fingerprintTokens: true },
    createdBy: 'init',
    createdAt: NOW,
    modifiedBy: null,
    modifiedAt: null,
  }
}

export function application(n: number, own: Partial<StoredApplication> = {}): StoredApplication {
  return {
    id: uuid(n),
    name: `application ${n}`,
    type: 'private',
    permissions: ['token:create', 'token:use'],
    rules: [
      {
        description: 'Für alle',
        priority: 1,
        container: '/pci/high/',
        transform: 'mask',
        permissions: ['token:read'],
      },
    ],
    destinations: ['api.example.com', '*.bücher.example:8443'],
    allowedOrigins: ['https://shop.example'],
    expiresAt: null,
    createdBy: uuid(99),
    createdAt: NOW,
    modifiedBy: null,
    modifiedAt: null,
    ...own,
  }
}

export function key(n: number, applicationNumber: number): StoredApplicationKey {
  return {
    id: uuid(n),
    applicationId: uuid(applicationNumber),
    hash: hash(uuid(n)),
    prefix: 'key_prod_abc',
    version: 1,
    createdBy: uuid(99),
    createdAt: NOW,
  }
}

export function proxy(n: number, own: Partial<StoredProxy> = {}): StoredProxy {
  return { ...reactor(n), hash: hash(`proxy ${n}`.padEnd(32)), ...own }
}

export function reactor(n: number, own: Partial<StoredReactor> = {}): StoredReactor {
  return {
    id: uuid(n),
    name: `Größe ${n}`,
    terms: bytes(90),
    createdBy: uuid(99),
    createdAt: NOW,
    modifiedBy: null,
    modifiedAt: null,
    revision: 0,
    ...own,
  }
}

/** A job that is due at NOW, to be run. */
export function job(n: number, own: Partial<StoredJob> = {}): StoredJob {
  return {
    id: uuid(n),
    reactorId: uuid(99),
    stage: 'run',
    claimed: false,
    deliveryQueue: 'run',
    dueAt: NOW,
    attempts: 0,
    createdAt: NOW,
    terms: bytes(80),
    result: null,
    revision: 0,
    ...own,
  }
}

export function token(n: number, own: Partial<StoredToken> = {}): StoredToken {
  return {
    ...named(n),
    type: 'card',
    containers: ['/pci/high/'],
    data: bytes(120),
    cvc: null,
    metadata: null,
    details: null,
    fingerprint: null,
    deduplicate: false,
    indexes: [],
    expiresAt: null,
    createdBy: uuid(99),
    createdAt: NOW,
    modifiedBy: null,
    modifiedAt: null,
    revision: 0,
    uncommitted: false,
    ...own,
  }
}

export function named(n: number): { id: string; internalId: string } {
  return { id: uuid(n), internalId: uuid(n) }
}

/** Returns a UUID that sorts by `n`, from -1. */
export function uuid(n: number): string {
  return `00000000-0000-4000-8000-${(n + 1).toString(16).padStart(12, '0')}`
}

/** Returns 32 bytes that are unique to `text`. */
export function hash(text: string): Uint8Array {
  return new TextEncoder().encode(text).slice(-32)
}

export function bytes(length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, n) => (n * 31 + length) & 255)
}

export function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, n) => from + n)
}

export function byInternalId(tokens: readonly StoredToken[]): StoredToken[] {
  return tokens.toSorted((a, b) => (a.internalId < b.internalId ? -1 : 1))
}

/** An audit event, about a token. */
export function auditEvent(n: number, own: Partial<AuditEvent> = {}): AuditEvent {
  return {
    at: NOW + n,
    applicationId: uuid(50),
    keyId: uuid(51),
    traceId: `trace ${n}`,
    entityType: 'token',
    operation: 'create',
    allowed: true,
    changed: true,
    permission: 'token:create',
    shown: null,
    replayed: false,
    dryRun: false,
    destination: null,
    entityIds: [uuid(n)],
    ...own,
  }
}
