/** Compares the readers of described entities with the model. */
import assert from 'node:assert/strict'
import {
  ACCESS_TABLES,
  applicationKeyStatement,
  applicationStatement,
  sessionStatement,
} from '../../src/ports/access-state.ts'
import type { Store } from '../../src/ports/store.ts'
import { LISTED_NAMES, type EntityName } from '../../src/ports/store/entities.ts'
import type {
  StoredApplication,
  StoredApplicationKey,
  StoredSession,
} from '../../src/ports/stored.ts'
import type { EntityModel } from './entity-model.ts'
import { IDS, type EntityRow } from './entity-values.ts'

/** Nothing is expired at this instant. */
const EARLY = -1
const PAGE = { page: 1, size: 100 }

/** Compares the readers of each tenant. */
export async function readersAgree(
  store: Store,
  model: EntityModel,
  tenantIds: readonly string[],
): Promise<void> {
  for (const tenantId of tenantIds) {
    const one = (name: EntityName, id = '') => model.find(tenantId, name, { id })
    const all = (name: EntityName) => byId(model.all(tenantId, name))
    assert.deepEqual(await store.tenants.find(tenantId), one('tenant'))
    assert.deepEqual(byId(await store.tenants.keys(tenantId)), all('tenant_key'))
    assert.deepEqual(await store.jobs.callbackSecrets(tenantId), one('callback_secret'))
    for (const name of LISTED_NAMES) {
      const rows = store.rows(name)
      for (const id of IDS) assert.deepEqual(await rows.find(tenantId, id), one(name, id))
      const { total, items } = await rows.list(tenantId, {}, PAGE)
      assert.deepEqual(byId(items), all(name))
      assert.equal(total, items.length)
    }
    for (const id of IDS) {
      assert.deepEqual(await store.applications.find(tenantId, id), one('application', id))
      assert.deepEqual(await store.proxies.find(tenantId, id), one('proxy', id))
      assert.deepEqual(await store.jobs.find(tenantId, id), one('job', id))
    }
    const { items } = await store.applications.list(tenantId, { now: EARLY }, PAGE)
    assert.deepEqual(byId(items), all('application'))
    const keys = await Promise.all(IDS.map((it) => store.applications.keys(tenantId, it)))
    assert.deepEqual(byId(keys.flat()), all('application_key'))
    for (const answer of all('answer')) {
      assert.deepEqual(await store.answers.find(tenantId, String(answer['id']), EARLY), answer)
    }
    await holdersAgree(store, model, tenantId)
    await jobsAgree(store, model, tenantId)
    await statementsAgree(store, model, tenantId)
  }
}

/** Compares the holders of keys, which are found by hashes: none without the rows that theirs belong to. */
async function holdersAgree(store: Store, model: EntityModel, tenantId: string): Promise<void> {
  const tenant = model.find(tenantId, 'tenant', {})
  const bytes = (row: EntityRow, member: string) => row[member] as Uint8Array
  const holding = (rights: EntityRow): EntityRow | null => {
    const named = { applicationId: rights['applicationId'], id: rights['keyId'] }
    const isThere = model.find(tenantId, 'application_key', named) !== null
    return isThere ? model.find(tenantId, 'application', { id: rights['applicationId'] }) : null
  }
  for (const key of model.all(tenantId, 'application_key')) {
    const application = model.parentOf(tenantId, 'application_key', key)
    const found = await store.applications.findByKeyHash(bytes(key, 'hash'))
    assert.deepEqual(found, tenant && { tenant, application, keyId: key['id'] })
  }
  for (const proxy of model.all(tenantId, 'proxy')) {
    const found = await store.proxies.findByKeyHash(bytes(proxy, 'hash'))
    assert.deepEqual(found, tenant && { tenant, proxy })
  }
  for (const session of model.all(tenantId, 'session')) {
    const opener = holding(session)
    const nonce = await store.sessions.findByNonce(tenantId, bytes(session, 'nonceHash'), EARLY)
    assert.deepEqual(nonce, opener && session)
    const granted = session['authorization'] as EntityRow | null
    const authorizer = granted && holding(granted)
    const isHeld = tenant !== null && opener !== null && (granted === null || authorizer !== null)
    const found = await store.sessions.findByKeyHash(bytes(session, 'hash'))
    const holder = { tenant, application: opener, session, authorizer }
    assert.deepEqual(found, isHeld ? holder : null)
  }
}

async function jobsAgree(store: Store, model: EntityModel, tenantId: string): Promise<void> {
  const jobs = model.all(tenantId, 'job')
  const expected = { waiting: { count: 0, bytes: 0 }, finished: { count: 0, bytes: 0 } }
  for (const it of jobs) {
    const size = expected[it['stage'] === 'run' ? 'waiting' : 'finished']
    size.count += 1
    size.bytes += (it['terms'] as Uint8Array).length
    size.bytes += (it['result'] as Uint8Array | null)?.length ?? 0
  }
  assert.deepEqual(await store.jobs.sizes(tenantId), expected)
}

/** Compares the statements that a tenant's keys attest. They are null for a row that is stored in another form. */
async function statementsAgree(store: Store, model: EntityModel, tenantId: string): Promise<void> {
  const found: string[] = []
  for (const table of ACCESS_TABLES) {
    for await (const rows of store.accessRows(tenantId, table)) {
      found.push(...rows.map((it) => JSON.stringify(it.statement)))
    }
  }
  const all = <Stored>(name: EntityName) => model.all(tenantId, name) as unknown as Stored[]
  const expected = [
    ...all<StoredApplication>('application').map((it) => applicationStatement(tenantId, it)),
    ...all<StoredApplicationKey>('application_key').map((it) =>
      applicationKeyStatement(tenantId, it),
    ),
    ...all<StoredSession>('session').map((it) => sessionStatement(tenantId, it)),
  ]
  assert.deepEqual(found.toSorted(), expected.map((it) => JSON.stringify(it)).toSorted())
}

function byId(rows: readonly unknown[]): EntityRow[] {
  const keyed = (rows as readonly EntityRow[]).map((it): [string, EntityRow] => [
    JSON.stringify([it['id'], it['applicationId'], it['purpose'], it['version']]),
    it,
  ])
  return keyed.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, it]) => it)
}
