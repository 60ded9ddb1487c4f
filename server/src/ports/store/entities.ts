/**
 * Describes each stored entity, once. The adapters derive their statements and the conversion of rows from it; the other modules,
 * which changes are audited, affect authentication or hold ciphertexts.
 *
 * A new entity is a record here, its tables in the two migrations, and its use cases. A member of its type that has no column
 * does not compile.
 */
import type { StoredCallbackSecrets, StoredJob } from '../jobs.ts'
import type { SealContext, WrappedTenantKey } from '../keyring.ts'
import type {
  StoredAnswer,
  StoredApplication,
  StoredApplicationKey,
  StoredProxy,
  StoredReactor,
  StoredSession,
  StoredTenant,
} from '../stored.ts'
import type { Entity } from './entity.ts'

const id = { name: 'id', kind: 'id', fixed: true } as const

/** The creator of a row, and the time of its creation. */
const CREATED = {
  createdBy: { name: 'created_by', kind: 'name', fixed: true },
  createdAt: { name: 'created_at', kind: 'number', fixed: true },
} as const

/** The last modifier of a row, and the time of that change. */
const MODIFIED = {
  modifiedBy: { name: 'modified_by', kind: 'name' },
  modifiedAt: { name: 'modified_at', kind: 'number' },
} as const

/** The columns of a named definition, with its encrypted configuration. */
function definition<const Value extends string>(value: Value) {
  return {
    name: { name: 'name', kind: 'text' },
    terms: { name: 'terms', kind: 'bytes', encrypted: { part: 'terms', value } },
    ...CREATED,
    ...MODIFIED,
    revision: { name: 'revision', kind: 'number' },
  } as const
}

const CREATE = { event: 'create', conflict: null } as const
const CREATE_IN_PARENT = { event: 'create', conflict: 'absent' } as const
const DELETE = { event: 'delete', conflict: 'absent' } as const
const HASH = { name: 'hash', kind: 'bytes', fixed: true } as const

export const ENTITIES = {
  /** Inserted and deleted by changes of its own, with its keys. */
  tenant: entity<StoredTenant>()({
    table: 'tenants',
    tenantColumn: 'id',
    goesWithTenant: true,
    columns: {
      id,
      name: { name: 'name', kind: 'text' },
      plan: { name: 'plan', kind: 'text', fixed: true },
      settings: { name: 'settings', kind: 'json' },
      ...CREATED,
      ...MODIFIED,
    },
    key: [],
    changes: { update: { event: 'update', conflict: 'absent' } },
    affectsAuthentication: true,
  }),

  /** The operator's: logged, not audited. */
  tenant_key: entity<WrappedTenantKey>()({
    table: 'tenant_keys',
    goesWithTenant: true,
    columns: {
      purpose: { name: 'purpose', kind: 'text' },
      version: { name: 'version', kind: 'number' },
      wrapped: { name: 'wrapped', kind: 'bytes' },
      createdAt: { name: 'created_at', kind: 'number' },
    },
    key: ['purpose', 'version'],
    parent: { entity: 'tenant', members: [], owns: false },
    changes: { insert: { event: null, conflict: 'keys-changed', refusesExisting: true } },
  }),

  application: entity<StoredApplication>()({
    table: 'applications',
    columns: {
      id,
      name: { name: 'name', kind: 'text' },
      type: { name: 'type', kind: 'text' },
      permissions: { name: 'permissions', kind: 'json' },
      rules: { name: 'rules', kind: 'json' },
      destinations: { name: 'destinations', kind: 'json' },
      allowedOrigins: { name: 'allowed_origins', kind: 'json' },
      expiresAt: { name: 'expires_at', kind: 'number' },
      ...CREATED,
      ...MODIFIED,
    },
    key: ['id'],
    changes: {
      insert: CREATE,
      update: { event: 'update', conflict: 'absent' },
      delete: DELETE,
    },
    affectsAuthentication: true,
    inAccessState: true,
  }),

  application_key: entity<StoredApplicationKey>()({
    table: 'application_keys',
    columns: {
      id,
      applicationId: { name: 'application', kind: 'id', fixed: true },
      hash: HASH,
      prefix: { name: 'prefix', kind: 'text', fixed: true },
      version: { name: 'version', kind: 'number', fixed: true },
      ...CREATED,
    },
    key: ['applicationId', 'id'],
    parent: { entity: 'application', members: ['applicationId'], owns: true },
    changes: { insert: CREATE_IN_PARENT, delete: DELETE },
    affectsAuthentication: true,
    inAccessState: true,
  }),

  /** Rights are given and proofs replaced by changes of their own. */
  session: entity<StoredSession>()({
    table: 'sessions',
    columns: {
      id,
      applicationId: { name: 'application', kind: 'id' },
      keyId: { name: 'application_key', kind: 'id' },
      hash: HASH,
      nonceHash: { name: 'nonce_hash', kind: 'bytes' },
      createdAt: { name: 'created_at', kind: 'number' },
      expiresAt: { name: 'expires_at', kind: 'number' },
      authorization: {
        later: true,
        group: {
          permissions: { name: 'permissions', kind: 'json' },
          rules: { name: 'rules', kind: 'json' },
          applicationId: { name: 'authorized_by', kind: 'id' },
          keyId: { name: 'authorized_with', kind: 'id' },
        },
      },
      proof: { name: 'proof', kind: 'bytes' },
    },
    key: ['id'],
    parent: { entity: 'application_key', members: ['applicationId', 'keyId'], owns: false },
    changes: { insert: CREATE_IN_PARENT },
    expires: 'expiresAt',
  }),

  /** Inserted by `remember-answer`: one for nearly every request that has an idempotency key. */
  answer: entity<StoredAnswer>()({
    table: 'answers',
    columns: {
      id: { name: 'id', kind: 'name' },
      status: { name: 'status', kind: 'number' },
      body: {
        name: 'body',
        kind: 'bytes',
        encrypted: { part: 'answer', value: 'idempotency_response' },
      },
      expiresAt: { name: 'expires_at', kind: 'number' },
    },
    key: ['id'],
    changes: {},
    sealedAs: 'answer',
  }),

  proxy: entity<StoredProxy>()({
    table: 'proxies',
    columns: { id, hash: HASH, ...definition('proxy_configuration') },
    key: ['id'],
    changes: {
      insert: CREATE,
      update: { event: 'update', conflict: 'proxy-changed' },
      delete: DELETE,
    },
    sealedAs: 'proxy',
  }),

  reactor: entity<StoredReactor>()({
    table: 'reactors',
    columns: { id, ...definition('reactor_configuration') },
    key: ['id'],
    changes: {
      insert: CREATE,
      update: { event: 'update', conflict: 'reactor-changed' },
      delete: DELETE,
    },
    sealedAs: 'reactor',
  }),

  /** The decisions of a request record that it was invoked and how its result is used. */
  job: entity<StoredJob>()({
    table: 'jobs',
    columns: {
      id,
      reactorId: { name: 'reactor', kind: 'id', fixed: true },
      stage: { name: 'stage', kind: 'text' },
      claimed: { name: 'claimed', kind: 'flag' },
      deliveryQueue: { name: 'lane', kind: 'text' },
      dueAt: { name: 'due_at', kind: 'number' },
      attempts: { name: 'attempts', kind: 'number' },
      createdAt: { name: 'created_at', kind: 'number', fixed: true },
      terms: { name: 'terms', kind: 'bytes', encrypted: { part: 'terms', value: 'job_request' } },
      result: { name: 'result', kind: 'bytes', encrypted: { part: 'result', value: 'job_result' } },
      revision: { name: 'revision', kind: 'number' },
    },
    key: ['id'],
    changes: {
      insert: { event: null, conflict: null },
      update: { event: null, conflict: 'job-changed' },
      delete: { event: null, conflict: 'job-changed', by: ['id', 'revision'] },
    },
    sealedAs: 'job',
  }),

  callback_secret: entity<StoredCallbackSecrets>()({
    table: 'callback_secrets',
    columns: {
      secrets: {
        name: 'secrets',
        kind: 'bytes',
        encrypted: { part: 'secrets', value: 'callback_secrets' },
      },
      revision: { name: 'revision', kind: 'number' },
    },
    key: [],
    changes: {
      insert: { event: 'rotate', conflict: 'callback-secrets-changed', refusesExisting: true },
      update: { event: 'rotate', conflict: 'callback-secrets-changed' },
    },
    sealedAs: 'callback',
  }),
} as const

/** Checks a record against the stored type, and keeps its own type. */
function entity<Stored>() {
  return <const E extends Entity<Stored>>(it: E): E & { readonly stored?: Stored } => it
}

/** As audit events name them. */
export type EntityName = keyof typeof ENTITIES

export type DescriptionOf<Name extends EntityName> = (typeof ENTITIES)[Name]

/** The stored form of an entity. */
export type StoredOf<Name extends EntityName> = NonNullable<DescriptionOf<Name>['stored']>

export const ENTITY_NAMES = Object.keys(ENTITIES) as readonly EntityName[]

/** The entities whose rows have an id and a time of creation. */
export type ListedName = {
  [Name in EntityName]: DescriptionOf<Name> extends { readonly key: readonly ['id'] }
    ? StoredOf<Name> extends { readonly createdAt: number }
      ? Name
      : never
    : never
}[EntityName]

export const LISTED_NAMES = ENTITY_NAMES.filter((it): it is ListedName => {
  const { key, columns } = descriptionOf(it)
  return key.join() === 'id' && 'createdAt' in columns
})

export type EntityTable<Name extends EntityName = EntityName> = DescriptionOf<Name>['table']

/** The entities that have ciphertexts. */
type SealedName = {
  [Name in EntityName]: DescriptionOf<Name> extends { readonly sealedAs: string } ? Name : never
}[EntityName]

export function descriptionOf(name: EntityName): Entity<object, string> {
  return ENTITIES[name]
}

/** Returns the column that names the tenant of a row. */
export function tenantColumnOf(name: EntityName): string {
  return descriptionOf(name).tenantColumn ?? 'tenant'
}

/** The entities whose rows outlive their tenant until they are cleared. */
export const CLEARED_NAMES = ENTITY_NAMES.filter((it) => !descriptionOf(it).goesWithTenant)

export const SEALED_NAMES = ENTITY_NAMES.filter(
  (it): it is SealedName => descriptionOf(it).sealedAs !== undefined,
)

/** The tables of entities with ciphertexts. */
type SealedTable = EntityTable<SealedName>

type ColumnsIn<Name extends EntityName> = DescriptionOf<Name>['columns']

/** The marks of the encrypted columns of these entities. */
type EncryptedIn<Name extends SealedName> = Extract<
  ColumnsIn<Name>[keyof ColumnsIn<Name>],
  { readonly encrypted: { readonly part: string } }
>['encrypted']

type EncryptedColumn = { [Name in SealedName]: EncryptedIn<Name> }[SealedName]

/** The parts of a token and of these entities, as associated data names them. */
export type EnvelopePart = 'data' | 'cvc' | EncryptedColumn['part']

/** The kinds of values in the encrypted columns of entities. */
export type EntityValueKind = EncryptedColumn['value']

/** The table of an envelope; `pending` has the changes of tokens in open transactions. */
export type EnvelopeTable = 'tokens' | 'pending' | SealedTable

/** In the order in which their envelopes are read. It stays, so that a verification that an earlier version began can go on. */
export const ENVELOPE_TABLES: readonly [EnvelopeTable, ...EnvelopeTable[]] = [
  'tokens',
  'pending',
  ...SEALED_NAMES.map((it) => ENTITIES[it].table),
]

/** Returns the associated data of a part of an entity; for one that a tenant has once, `id` is that of the tenant. */
export function sealContextOf(name: EntityName, part: string, id: string): SealContext {
  const { sealedAs } = descriptionOf(name)
  if (sealedAs === undefined) throw new TypeError(`Cannot seal: ${name} has no ciphertexts`)
  return { id, part, type: sealedAs, containers: [] }
}
