import assert from 'node:assert/strict'
import { test } from 'node:test'
import { changeName } from '../../test/kit/change-name.ts'
import {
  contextWith,
  stillWorld,
  thinKeyProvider,
  watched,
  type StillWorld,
} from '../../test/kit/still-world.ts'
import { MemoryStore } from '../../test/kit/memory-store/memory-store.ts'
import { COMMIT_WAIT_MS_MAX } from '../base/limits.ts'
import type { RequestContext } from '../request/context.ts'
import { ServiceError } from '../base/service-error.ts'
import type { Change } from '../ports/change.ts'
import type { Store } from '../ports/store.ts'
import { withCommit } from '../ports/with-commit.ts'
import { createApplicationKey, deleteApplicationKey } from './applications/application-keys.ts'
import { commitAccess } from './commit-access.ts'
import { createApplication } from './applications/create-application.ts'
import { deleteApplication } from './applications/delete-application.ts'
import { recoverManagementKey } from './applications/recover-management-key.ts'
import { regenerateKey } from './applications/regenerate-key.ts'
import { AccessSum } from './access-sum.ts'
import { setUp } from './applications/set-up.ts'
import { updateApplication } from './applications/update-application.ts'

const BODY = { name: 'app', type: 'private', permissions: ['token:create'] }

test('every use case that changes applications or keys leaves an access state that seals them', async () => {
  const stage = await makeStage()
  const { world, context } = stage
  let changes = 2
  const step = async <Result>(made: number, work: Promise<Result>): Promise<Result> => {
    const result = await work
    changes += made
    await assertSealed(stage, changes)
    return result
  }
  await assertSealed(stage, changes)
  const created = await step(2, createApplication(world, context, BODY))
  const { id } = created.body as { id: string }
  const body = { name: 'renamed', permissions: ['token:update'] }
  await step(1, updateApplication(world, context, { id, body }))
  await step(2, regenerateKey(world, context, id))
  const second = await step(1, createApplicationKey(world, context, id))
  const keyId = (second.body as { id: string }).id
  await step(1, deleteApplicationKey(world, context, { id, keyId }))
  await step(1, createApplicationKey(world, context, id))
  await step(1, createApplication(world, context, { ...BODY, create_key: false }))
  await step(1, deleteApplication(world, context, id))
  const recovery = { tenant: context.tenantId, applicationId: null }
  const recovered = await step(2, recoverManagementKey(world, thinKeyProvider(), recovery))
  const { applicationId } = recovered
  await step(1, recoverManagementKey(world, thinKeyProvider(), { ...recovery, applicationId }))
})

test('changes at the same time, by two servers, all go into the access state', async () => {
  const { world, context } = await makeStage()
  const other = { ...world, store: { ...world.store } }
  let conflicts = 0
  const counted = (store: Store): Store =>
    withCommit(store, async (tenantId, changes) => {
      await aWhile()
      const conflict = await store.commit(tenantId, changes)
      if (conflict?.kind === 'access-changed') conflicts++
      return conflict
    })
  const servers = [world, other].map((it) => ({ ...it, store: counted(it.store) }))
  await Promise.all(
    Array.from({ length: 8 }, (_, n) =>
      createApplication(servers[n % 2]!, { ...context, decisions: [] }, BODY),
    ),
  )
  assert.ok(conflicts > 0, 'they never met')
  await assertSealed({ world, context }, 2 + 16)
})

test('changes of one server at the same time meet no conflict', async () => {
  const { world, context } = await makeStage()
  const kinds: (string | undefined)[] = []
  const store = withCommit(world.store, async (tenantId, changes) => {
    const conflict = await world.store.commit(tenantId, changes)
    kinds.push(conflict?.kind)
    return conflict
  })
  const server = { ...world, store }
  await Promise.all(
    Array.from({ length: 8 }, () => createApplication(server, { ...context, decisions: [] }, BODY)),
  )
  assert.deepEqual(
    kinds,
    Array.from({ length: 8 }, () => undefined),
  )
  await assertSealed({ world, context }, 2 + 16)
})

test('a change is refused after losing to other servers too often, and one that waits too long', async () => {
  const { world, context } = await makeStage()
  let attempts = 0
  const busy = withCommit(world.store, async () => {
    attempts++
    return { kind: 'access-changed' }
  })
  const losing = createApplication({ ...world, store: busy }, context, BODY)
  await assert.rejects(losing, { code: 'store_unavailable' })
  assert.ok(attempts > 1 && attempts < 100)

  const { promise, resolve } = Promise.withResolvers<null>()
  const hanging = { ...world, store: withCommit(world.store, () => promise) }
  const [first, second] = [1, 2].map(() =>
    createApplication(hanging, { ...context, decisions: [] }, BODY),
  )
  // The first one waits for the store by then.
  await aWhile()
  world.clock.pass(COMMIT_WAIT_MS_MAX + 1)
  resolve(null)
  await first
  await assert.rejects(second!, { code: 'store_unavailable' })
})

test('an access state that cannot be vouched for is left as it is, and the change is made', async () => {
  const edits: Record<string, (state: NonNullable<State>) => State> = {
    'it is gone': (it) => ({ ...it, access: null }),
    'it is not genuine': (it) => ({ ...it, access: { ...it.access!, revision: 7 } }),
    'the checkpoint is gone': (it) => ({ ...it, checkpoint: null }),
    'the checkpoint is not genuine': (it) => ({
      ...it,
      checkpoint: { ...it.checkpoint!, at: 1 },
    }),
  }
  for (const [name, edit] of Object.entries(edits)) {
    const { world, context } = await makeStage()
    const { auditLog } = world.store
    const state = async (tenantId: string) => edit((await auditLog.state(tenantId))!)
    const store = { ...world.store, auditLog: { ...auditLog, state } }
    const before = world.committed.length
    await createApplication({ ...world, store }, context, BODY)
    const made = world.committed.slice(before).map(changeName)
    assert.equal(made.at(-1), 'leave-access-state', name)
    assert.ok(made.includes('insert application'), name)
  }
})

test('a key whose row cannot be read can be revoked, and so can its application: only the access state is left', async () => {
  const { world, context } = await makeStage()
  const created = await createApplication(world, context, BODY)
  const { id } = created.body as { id: string }
  const second = await createApplicationKey(world, context, id)
  const keyId = (second.body as { id: string }).id
  const { applications } = world.store
  for (const damage of [new SyntaxError(), new TypeError(), new RangeError()]) {
    const keys = () => Promise.reject(damage)
    const store = { ...world.store, applications: { ...applications, keys } }
    const before = world.committed.length
    if (damage instanceof SyntaxError) {
      await deleteApplicationKey({ ...world, store }, context, { id, keyId })
    } else {
      const { body } = await createApplication(world, context, BODY)
      await deleteApplication({ ...world, store }, context, (body as { id: string }).id)
    }
    assert.equal(world.committed.slice(before).at(-1)!.kind, 'leave-access-state')
  }
})

test('a change is refused, and the access state is not left, if the store cannot be read', async () => {
  const { world, context } = await makeStage()
  const created = await createApplication(world, context, BODY)
  const { id } = created.body as { id: string }
  const keys = () => Promise.reject(new ServiceError('store_unavailable'))
  const store = { ...world.store, applications: { ...world.store.applications, keys } }
  const before = world.committed.length
  const deleting = deleteApplication({ ...world, store }, context, id)
  await assert.rejects(deleting, { code: 'store_unavailable' })
  assert.equal(world.committed.length, before)
})

test('a change without its audit event, or two of the same row, are a mistake', async () => {
  const { world, context } = await makeStage()
  const { tenantId, applicationId: id } = context
  const application = (await world.store.applications.find(tenantId, id))!
  const change: Change = { kind: 'update', entity: 'application', row: application }
  await assert.rejects(commitAccess(world, tenantId, [change]), /without their audit events/)
  const event = world.committed.flatMap((it) =>
    it.kind === 'append-audit-events'
      ? it.events.filter((event) => event.entityType === 'application')
      : [],
  )
  const events: Change = { kind: 'append-audit-events', events: [event[0]!, event[0]!] }
  await assert.rejects(commitAccess(world, tenantId, [change, change, events]), /changes twice/)
})

type State = Awaited<ReturnType<Store['auditLog']['state']>>

interface SealedTenant {
  readonly world: StillWorld
  readonly context: RequestContext
}

async function makeStage(): Promise<SealedTenant> {
  const still = stillWorld()
  const world = {
    ...still,
    store: watched(new MemoryStore(), (changes) => still.committed.push(...changes)),
  }
  const made = await setUp(world, thinKeyProvider(), { name: 'first', plan: 'enterprise' })
  const { tenantId, applicationId } = made
  const permissions = ['application:create', 'application:update', 'application:delete'] as const
  const context = contextWith({ tenantId, applicationId, type: 'management', permissions })
  return { world, context }
}

/** Lets others that wait for nothing go on. */
async function aWhile(): Promise<void> {
  for (let n = 0; n < 50; n++) await Promise.resolve()
}

/** Computes the sum of the rows anew. */
async function assertSealed({ world, context }: SealedTenant, revision: number): Promise<void> {
  const { tenantId } = context
  const keys = await world.keyring.open(tenantId)
  const sum = new AccessSum(keys, tenantId)
  for (const table of ['applications', 'application_keys'] as const) {
    for await (const rows of world.store.accessRows(tenantId, table)) {
      for (const it of rows) sum.add(it.statement!)
    }
  }
  const { access } = (await world.store.auditLog.state(tenantId))!
  assert.deepEqual(
    { ...access, proof: Buffer.from(access!.proof) },
    { ...sum.state(revision), proof: Buffer.from(sum.state(revision).proof) },
  )
}
