/**
 * The access matrix as a table, and tenants with one of everything it is about: who may do what to which.
 *
 * A route without a row fails in test/interface/access-matrix.test.ts.
 */
import assert from 'node:assert/strict'
import { permissionsOf } from '../../src/access/permissions.ts'
import type { ApplicationType, Permission } from '../../src/base/access.ts'
import type { Json, JsonObject } from '../../src/base/json.ts'
import { stillVault, type StillVault } from './still-vault.ts'

export interface MatrixRow {
  readonly permission: Permission | 'any-key' | 'public'
  readonly plan?: 'enterprise'
  /** The only type of application that may. */
  readonly applicationType?: ApplicationType
  /** A wider permission that amounts to this one. */
  readonly impliedBy?: Permission
  readonly headers?: Readonly<Record<string, string>>
  /** Status for a caller with access. */
  readonly success: number
  /** A text `$nonce` in it stands for the nonce of an open session. */
  readonly body?: JsonObject
  /** Which of a tenant's things each path parameter names. */
  readonly params?: Readonly<Record<string, MatrixResource>>
  /** Where the token in question lives, if it is about one. */
  readonly container?: string
}

export type MatrixResource =
  | 'application'
  | 'key'
  | 'token'
  | 'transaction'
  | 'nonce'
  | 'proxy'
  | 'reactor'
  | 'callback'

const APPLICATION = { id: 'application' } as const
const KEY = { id: 'application', keyId: 'key' } as const
const UPDATE = { name: 'renamed', permissions: ['token:read'] }
const REACTOR = { name: 'x', code: 'x', configuration: {} }
const PROXY = { name: 'x', destination_url: 'https://x.example' }

const PASSED: MatrixRow = {
  permission: 'proxy:invoke',
  impliedBy: 'token:use',
  success: 200,
  headers: { 'BT-PROXY-URL': 'https://x.example' },
}

export const MATRIX_ROWS: Readonly<Record<string, MatrixRow>> = {
  'POST /tokenize': {
    permission: 'token:create',
    success: 200,
    body: { a: 'x' },
    container: '/general/high/',
  },
  'POST /tokens': {
    permission: 'token:create',
    success: 201,
    body: { data: 'x' },
    container: '/general/high/',
  },
  'GET /tokens/:id': {
    permission: 'token:read',
    success: 200,
    params: { id: 'token' },
    container: '/general/high/',
  },
  'PATCH /tokens/:id': {
    permission: 'token:update',
    success: 200,
    body: { metadata: { a: 'x' } },
    params: { id: 'token' },
    container: '/general/high/',
  },
  'DELETE /tokens/:id': {
    permission: 'token:delete',
    success: 204,
    params: { id: 'token' },
    container: '/general/high/',
  },

  'POST /transactions': { permission: 'any-key', plan: 'enterprise', success: 201 },
  'POST /transactions/:id/commit': {
    permission: 'any-key',
    plan: 'enterprise',
    success: 200,
    params: { id: 'transaction' },
  },
  'POST /transactions/:id/rollback': {
    permission: 'any-key',
    plan: 'enterprise',
    success: 200,
    params: { id: 'transaction' },
  },
  'GET /tokens': { permission: 'token:read', success: 200 },
  'POST /tokens/search': { permission: 'token:search', success: 200, body: { query: '' } },
  'GET /v2/tokens': { permission: 'token:read', success: 200 },
  'POST /v2/tokens/search': { permission: 'token:search', success: 200, body: { query: '' } },
  'POST /detokenize': { permission: 'token:read', success: 200, body: { a: 'x' } },

  'POST /proxy': PASSED,
  'GET /proxy': PASSED,
  'PUT /proxy': PASSED,
  'PATCH /proxy': PASSED,
  'DELETE /proxy': PASSED,

  'POST /proxies': { permission: 'proxy:create', success: 201, body: PROXY },
  'GET /proxies': { permission: 'proxy:read', success: 200 },
  'GET /proxies/:id': { permission: 'proxy:read', success: 200, params: { id: 'proxy' } },
  'PUT /proxies/:id': {
    permission: 'proxy:update',
    success: 200,
    body: PROXY,
    params: { id: 'proxy' },
  },
  'PATCH /proxies/:id': {
    permission: 'proxy:update',
    success: 204,
    body: { name: 'renamed' },
    params: { id: 'proxy' },
  },
  'DELETE /proxies/:id': { permission: 'proxy:delete', success: 204, params: { id: 'proxy' } },

  'POST /reactors': { permission: 'reactor:create', success: 201, body: REACTOR },
  'GET /reactors': { permission: 'reactor:read', success: 200 },
  'GET /reactors/:id': { permission: 'reactor:read', success: 200, params: { id: 'reactor' } },
  'PUT /reactors/:id': {
    permission: 'reactor:update',
    success: 200,
    body: REACTOR,
    params: { id: 'reactor' },
  },
  'PATCH /reactors/:id': {
    permission: 'reactor:update',
    success: 204,
    body: { name: 'renamed' },
    params: { id: 'reactor' },
  },
  'DELETE /reactors/:id': {
    permission: 'reactor:delete',
    success: 204,
    params: { id: 'reactor' },
  },
  'POST /reactors/:id/react': {
    permission: 'reactor:invoke',
    impliedBy: 'token:use',
    success: 200,
    params: { id: 'reactor' },
  },
  'POST /reactors/:id/react-async': {
    permission: 'reactor:invoke',
    impliedBy: 'token:use',
    plan: 'enterprise',
    success: 202,
    params: { id: 'reactor' },
  },
  // A caller learns nothing about another caller's invocations: react-async.test.ts.
  'GET /reactors/:id/results/:requestId': {
    permission: 'reactor:invoke',
    impliedBy: 'token:use',
    success: 404,
    params: { id: 'reactor', requestId: 'callback' },
  },

  'GET /callbacks': { permission: 'reactor:read', success: 200 },
  'POST /callbacks/:id/replay': {
    permission: 'reactor:update',
    success: 202,
    params: { id: 'callback' },
  },
  'GET /callbacks/secret': { permission: 'reactor:update', success: 200 },
  'POST /callbacks/secret/rotate': { permission: 'reactor:update', success: 200 },

  'POST /applications': {
    permission: 'application:create',
    success: 201,
    body: { name: 'x', type: 'private', permissions: ['token:read'] },
  },
  'GET /applications': { permission: 'application:read', success: 200 },
  'GET /applications/key': { permission: 'any-key', success: 200 },
  'GET /applications/:id': { permission: 'application:read', success: 200, params: APPLICATION },
  'PUT /applications/:id': {
    permission: 'application:update',
    success: 200,
    body: UPDATE,
    params: APPLICATION,
  },
  'DELETE /applications/:id': {
    permission: 'application:delete',
    success: 204,
    params: APPLICATION,
  },
  'POST /applications/:id/regenerate': {
    permission: 'application:update',
    success: 200,
    params: APPLICATION,
  },
  'POST /applications/:id/keys': {
    permission: 'application:update',
    success: 201,
    params: APPLICATION,
  },
  'GET /applications/:id/keys': {
    permission: 'application:read',
    success: 200,
    params: APPLICATION,
  },
  'GET /applications/:id/keys/:keyId': {
    permission: 'application:read',
    success: 200,
    params: KEY,
  },
  'DELETE /applications/:id/keys/:keyId': {
    permission: 'application:update',
    success: 204,
    params: KEY,
  },
  'GET /permissions': { permission: 'any-key', success: 200 },
  'GET /application-templates': { permission: 'any-key', success: 200 },
  'GET /application-templates/:id': {
    permission: 'any-key',
    success: 404,
    params: { id: 'application' },
  },

  'POST /sessions': { permission: 'any-key', applicationType: 'public', success: 201 },
  'POST /sessions/authorize': {
    permission: 'any-key',
    applicationType: 'private',
    success: 200,
    body: { nonce: '$nonce', permissions: ['token:read'] },
  },

  'GET /tenants/self': { permission: 'tenant:read', success: 200 },
  'PUT /tenants/self': { permission: 'tenant:update', success: 200, body: { name: 'renamed' } },
  'DELETE /tenants/self': { permission: 'tenant:delete', success: 204 },
  'GET /tenants/self/reports/usage': { permission: 'report:read', success: 200 },
  'GET /tenants/self/members': { permission: 'tenant:member:read', success: 200 },
  'GET /tenants/self/invitations': { permission: 'tenant:invitation:read', success: 200 },

  'GET /logs': { permission: 'log:read', success: 200 },
  'GET /logs/entity-types': { permission: 'log:read', success: 200 },

  // Nothing is built. The id of an application is the hash of no key.
  'GET /fields/v1/fields.js': { permission: 'public', success: 404 },
  'GET /fields/v1/:build/:file': {
    permission: 'public',
    success: 404,
    params: { build: 'application', file: 'application' },
  },
  'GET /fields/v1/:build/frame/:key_hash': {
    permission: 'public',
    success: 404,
    params: { build: 'application', key_hash: 'application' },
  },

  'GET /health/live': { permission: 'public', success: 200 },
  'GET /health/ready': { permission: 'public', success: 200 },
  'GET /': { permission: 'public', success: 200 },
  // The id of an application is the name of no page.
  'GET /docs/:page': { permission: 'public', success: 404, params: { page: 'application' } },
  'GET /docs/operate/:page': {
    permission: 'public',
    success: 404,
    params: { page: 'application' },
  },
  'GET /openapi.json': { permission: 'public', success: 200 },
}

/** A well-formed id that does not exist. */
export const ABSENT = '01945d00-0000-4000-8000-0000000000ff'
/** Part of every name and datum of the other tenant. */
export const THEIRS = 'belongs-to-them'

export type Things = Readonly<Record<MatrixResource, string>>

export interface TwoTenants {
  readonly vault: StillVault
  readonly ours: Things
  readonly theirs: Things
  /** Everything the other tenant sees of its own. */
  readonly theirState: () => Promise<Json[]>
}

/** Opens a vault whose first tenant has what the row is about. */
export async function oneTenant(row: MatrixRow): Promise<{ vault: StillVault; things: Things }> {
  const withCallback = Object.values(row.params ?? {}).includes('callback')
  const vault = await stillVault()
  const { things } = await furnish(vault, vault.managementKey, 'ours', withCallback)
  return { vault, things }
}

/** Opens a vault with two tenants, each of which has what the row is about. */
export async function twoTenants(row: MatrixRow): Promise<TwoTenants> {
  const withCallback = Object.values(row.params ?? {}).includes('callback')
  const { vault, ...ours } = await oneTenant(row)
  const theirManagementKey = await vault.addTenant(THEIRS)
  const theirs = await furnish(vault, theirManagementKey, THEIRS, withCallback)
  return {
    vault,
    ours: ours.things,
    theirs: theirs.things,
    theirState: async () => {
      const { application, token, proxy, reactor } = theirs.things
      const asked = [
        ['/applications', theirManagementKey],
        [`/applications/${application}/keys`, theirManagementKey],
        [`/tokens/${token}`, theirs.key],
        [`/proxies/${proxy}`, theirManagementKey],
        [`/reactors/${reactor}`, theirManagementKey],
      ] as const
      const replies = await Promise.all(asked.map(([at, key]) => vault.call('GET', at, { key })))
      for (const reply of replies) assert.equal(reply.status, 200, reply.text)
      return replies.map((it) => it.text)
    },
  }
}

/** Gives a tenant one of each thing; a callback takes longer than the others, and few ask for it. */
async function furnish(
  vault: StillVault,
  managementKey: string,
  name: string,
  withCallback: boolean,
): Promise<{ things: Things; key: string }> {
  const rule = { priority: 1, container: '/', transform: 'reveal', permissions: ['token:read'] }
  const permissions = ['token:create']
  const key = await keyIn(vault, managementKey, { name, permissions, rules: [rule] })
  const token = await vault.call('POST', '/tokens', {
    key,
    body: { data: name, metadata: { name } },
  })
  const application = (await vault.call('GET', '/applications/key', { key })).json()['id'] as string
  const path = `/applications/${application}/keys`
  const keys = await vault.call('GET', path, { key: managementKey })
  const [first] = JSON.parse(keys.text) as [{ id: string }]
  const transaction = await openTransaction(vault, managementKey)
  const { nonce } = await openSession(vault, managementKey)
  const proxy = await vault.call('POST', '/proxies', {
    key: managementKey,
    body: { name, destination_url: `https://${name}.example` },
  })
  const reactor = await vault.call('POST', '/reactors', {
    key: managementKey,
    body: { name, code: name, configuration: { name } },
  })
  const reactorId = reactor.json()['id'] as string
  const things = {
    application,
    reactor: reactorId,
    callback: withCallback ? await makeDeadLetter(vault, managementKey, reactorId) : ABSENT,
    proxy: proxy.json()['id'] as string,
    key: first.id,
    token: token.json()['id'] as string,
    transaction,
    nonce,
  }
  return { key, things }
}

/** Has a callback refused by its receiver, and returns its id. */
async function makeDeadLetter(
  vault: StillVault,
  managementKey: string,
  reactor: string,
): Promise<string> {
  const { call, world, app } = vault
  const key = await keyIn(vault, managementKey, { permissions: ['token:use'] })
  const body = { callback_url: 'https://receiver.example/' }
  const reply = await call('POST', `/reactors/${reactor}/react`, { key, body })
  assert.equal(reply.status, 202, reply.text)
  const answer = world.egress.reply
  world.egress.reply = () => ({ status: 410 })
  for (let stages = 0; stages < 2; stages++) {
    await app.jobs.poll()
    await app.jobs.settled()
  }
  world.egress.reply = answer
  return reply.headers['bt-reactor-request-id']!
}

/** Opens a transaction of the tenant. */
async function openTransaction(vault: StillVault, key: string): Promise<string> {
  const reply = await vault.call('POST', '/transactions', { key })
  assert.equal(reply.status, 201, reply.text)
  return reply.json()['id'] as string
}

export async function openSession(
  vault: StillVault,
  managementKey: string,
): Promise<{ sessionKey: string; nonce: string }> {
  const body = { type: 'public', permissions: ['token:create'] }
  const key = await keyIn(vault, managementKey, body)
  const reply = await vault.call('POST', '/sessions', { key })
  assert.equal(reply.status, 201, reply.text)
  const { session_key: sessionKey, nonce } = reply.json()
  return { sessionKey: sessionKey as string, nonce: nonce as string }
}

export function withNonce(body: JsonObject, nonce: string): JsonObject {
  return body['nonce'] === '$nonce' ? { ...body, nonce } : body
}

export async function keyIn(
  vault: StillVault,
  managementKey: string,
  body: JsonObject,
): Promise<string> {
  const made = { name: 'x', type: 'private', ...body }
  const reply = await vault.call('POST', '/applications', { key: managementKey, body: made })
  assert.equal(reply.status, 201, reply.text)
  return reply.json()['key'] as string
}

/** The application that a row's permission is for. */
export function grantedTo({ permission }: MatrixRow): JsonObject {
  if (permission === 'any-key') return { type: 'public', permissions: ['token:create'] }
  const own = permissionsOf('private').some((it) => it === permission)
  const type: ApplicationType = own ? 'private' : 'management'
  return { type, permissions: [permission] }
}
