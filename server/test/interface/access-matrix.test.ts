/**
 * Who may do what to which: every operation, asked by every kind of key about every kind of id.
 *
 * The cases are made from the routes of the service and the rows of test/kit/matrix-rows.ts; a route without a row fails.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { PERMISSIONS } from '../../src/base/permission-table.ts'
import { permissionsOf } from '../../src/access/permissions.ts'
import { makeApiKey } from '../../src/access/api-key.ts'
import { APPLICATION_TYPES, type ApplicationType } from '../../src/base/access.ts'
import {
  ABSENT,
  grantedTo,
  keyIn,
  MATRIX_ROWS,
  openSession,
  THEIRS,
  twoTenants,
  withNonce,
  type MatrixRow,
  type Things,
} from '../kit/matrix-rows.ts'
import { stillRoutes } from '../kit/still-routes.ts'
import type { Reply, StillVault } from '../kit/still-vault.ts'

const WORTHLESS_KEYS: Record<
  string,
  (vault: StillVault) => Promise<string | undefined> | string | undefined
> = {
  'no key': () => undefined,
  'a key that is none': () => 'not-a-key',
  'a key that looks right and does not exist': ({ world }) => makeApiKey('private', world.random),
  'a management key that looks right and does not exist': ({ world }) =>
    makeApiKey('management', world.random),
  'the key of an application that is gone': async (vault) => {
    const key = await vault.keyFor({ type: 'private', permissions: permissionsOf('private') })
    const own = await vault.call('GET', '/applications/key', { key })
    const path = `/applications/${own.json()['id'] as string}`
    assert.equal((await vault.call('DELETE', path, { key: vault.managementKey })).status, 204)
    return key
  },
}

const ROUTES = stillRoutes()

test('every route has a row in the access matrix, and every row a route', () => {
  assert.deepEqual(
    Object.keys(MATRIX_ROWS).toSorted(),
    ROUTES.map((it) => `${it.method} ${it.path}`).toSorted(),
  )
})

for (const { method, path, permission, plan, applicationType } of ROUTES) {
  const row = MATRIX_ROWS[`${method} ${path}`]
  if (row === undefined) continue

  describe(`${method} ${path}`, () => {
    test(`asks for ${row.permission}`, () => {
      assert.equal(permission, row.permission)
      assert.equal(plan, row.plan)
      assert.equal(applicationType, row.applicationType)
    })

    for (const [name, key] of Object.entries(WORTHLESS_KEYS)) {
      const status = row.permission === 'public' ? row.success : 401
      test(`${name}: ${status}`, async () => {
        const { vault, ours } = await twoTenants(row)
        await check(vault, await key(vault), { status, things: ours })
      })
    }

    for (const type of APPLICATION_TYPES) {
      const open = row.permission === 'any-key' || row.permission === 'public'
      const enough = [row.permission, row.impliedBy]
      const others = permissionsOf(type).filter((it) => !enough.includes(it))
      const fits = row.applicationType === undefined || row.applicationType === type
      const status = open && fits ? row.success : 403
      test(`a ${type} application with every other permission: ${status}`, async () => {
        const { vault, ours } = await twoTenants(row)
        const key = await vault.keyFor({ type, permissions: others })
        const reply = await check(vault, key, { status, things: ours })
        if (status === 403) assertAdvised(reply, type, row)
      })
      if (open) continue

      if (!permissionsOf(type).includes(row.permission)) continue
      test(`a ${type} application with this permission alone: ${row.success}`, async () => {
        const { vault, ours } = await twoTenants(row)
        const key = await vault.keyFor({ type, permissions: [row.permission] })
        await check(vault, key, { status: row.success, things: ours })
      })

      if (row.container === undefined) continue
      for (const [container, status] of containersAround(row.container, row.success)) {
        test(`a ${type} application with this permission on ${container}: ${status}`, async () => {
          const { vault, ours } = await twoTenants(row)
          const rule = { priority: 1, container, transform: 'mask', permissions: [row.permission] }
          const key = await vault.keyFor({ type, rules: [rule] })
          await check(vault, key, { status, things: ours })
        })
      }
    }

    const unrestricted = row.permission === 'any-key' && row.applicationType === undefined
    const withoutRights = row.permission === 'public' || unrestricted ? row.success : 403
    test(`a session that is not authorised: ${withoutRights}`, async () => {
      const { vault, ours } = await twoTenants(row)
      const { sessionKey } = await openSession(vault, vault.managementKey)
      await check(vault, sessionKey, { status: withoutRights, things: ours })
    })

    const owned = row.permission === 'public' ? {} : (row.params ?? {})
    for (const [parameter, thing] of Object.entries(owned)) {
      test(`${parameter} of another tenant, of no tenant and of no form: the same 404, and nothing happens`, async () => {
        const { vault, ours, theirs, theirState } = await twoTenants(row)
        const key = await vault.keyFor(grantedTo(row))
        const before = await theirState()
        const replies: string[] = []
        for (const id of [theirs[thing], ABSENT, 'no-such-form', ABSENT.toUpperCase()]) {
          const reply = await check(vault, key, { status: 404, things: { ...ours, [thing]: id } })
          const { date: _date, ...headers } = reply.headers
          replies.push(JSON.stringify([reply.text, headers]))
        }
        assert.equal(new Set(replies).size, 1, replies.join('\n'))
        assert.deepEqual(await theirState(), before)
        await check(vault, key, { status: row.success, things: ours })
      })
    }

    if (row.plan === 'enterprise') {
      test('a tenant on the standard plan: 403', async () => {
        const { vault, ours } = await twoTenants(row)
        const managementKey = await vault.addTenant('standard', 'standard')
        const key = await keyIn(vault, managementKey, grantedTo(row))
        await check(vault, key, { status: 403, things: ours })
      })
    }

    /** Makes the call and checks its status, and that it tells nothing of the other tenant. */
    async function check(
      vault: StillVault,
      key: string | undefined,
      { status, things }: { status: number; things: Things },
    ): Promise<Reply> {
      const url = path.replaceAll(/:(\w+)/g, (_, name: string) => things[row!.params![name]!])
      const reply = await vault.call(method, url, {
        ...(key === undefined ? {} : { key }),
        ...(row!.body === undefined ? {} : { body: withNonce(row!.body, things.nonce) }),
        headers: { 'bt-trace-id': 'same', ...row!.headers },
      })
      assert.equal(reply.status, status, reply.text)
      assert.ok(!reply.text.includes(THEIRS), reply.text)
      return reply
    }
  })
}

/** A 403 names the types of application that can, exactly if the type of the caller never can. */
function assertAdvised(
  { text }: Reply,
  type: ApplicationType,
  { permission, applicationType }: MatrixRow,
): void {
  const able = PERMISSIONS.find((it) => it.type === permission)?.applicationTypes
  const types = applicationType === undefined ? able! : [applicationType]
  const never = !types.includes(type)
  for (const it of APPLICATION_TYPES) {
    const named = text.includes(JSON.stringify(JSON.stringify(it)).slice(1, -1))
    assert.equal(named, never && types.includes(it), `${it}: ${text}`)
  }
  if (applicationType === undefined) {
    assert.equal(text.includes(`No ${type} key can have it`), never, text)
  }
}

/** Containers of a rule, and what it gets for a token in `container`. */
function containersAround(
  container: string,
  success: number,
): [container: string, status: number][] {
  const up = container.replace(/[^/]+\/$/, '')
  return [
    [container, success],
    [up, success],
    ['/', success],
    [`${container}deeper/`, 403],
    [`${up}beside/`, 403],
    // Begins as the container does, but is another.
    [`${container.slice(0, -2)}/`, 403],
    [`${container.slice(0, -1)}er/`, 403],
    ['/elsewhere/', 403],
  ]
}
