import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as fc from '../../test/kit/fast-check.ts'
import { contextWith } from '../../test/kit/still-world.ts'
import {
  APPLICATION_TYPES,
  TRANSFORMS,
  type AccessRule,
  type Permission,
  type Principal,
  type Transform,
} from '../base/access.ts'
import { tryAuthorize, authorize, mayAnywhere, visibleContainers } from './authorize.ts'
import { covers } from './container.ts'
import { PERMISSIONS } from '../base/permission-table.ts'
import { mayHold } from './permissions.ts'

const CLERK = {
  rules: [
    rule(1, '/pci/high/', 'mask', ['token:read', 'token:search']),
    rule(2, '/pci/', 'reveal', ['token:read']),
    rule(3, '/pii/', 'redact', ['token:create', 'token:read', 'token:use']),
  ],
}
const UPDATER = { rules: [rule(1, '/a/', 'mask', ['token:update', 'token:delete'])] }
const BACKEND = {
  permissions: ['token:create', 'token:read', 'token:delete', 'token:use'] as const,
}
const BROWSER = { type: 'public', permissions: ['token:create', 'token:update'] } as const
const MIXED = {
  permissions: ['token:read', 'token:delete'] as const,
  rules: [rule(7, '/pci/', 'reveal', ['token:read'])],
}
const PROXYIST = { permissions: ['proxy:invoke'] as const }
const ADMIN = { type: 'management', permissions: ['application:read'] } as const

describe('visibleContainers()', () => {
  test('names each container once, however the rules of a session and of its grantor are nested', () => {
    const nested = (count: number) =>
      Array.from({ length: count }, (_, n) =>
        rule(n + 1, `/${'a/'.repeat(n + 1)}`, 'reveal', ['token:read']),
      )
    const within = { type: 'private', permissions: [], rules: nested(30) } as const
    const context = contextWith({ type: 'session', rules: nested(20), within })
    const paths = visibleContainers(context, 'token:read')
    assert.deepEqual(
      paths,
      within.rules.map((it) => it.container),
    )
  })
})

describe('authorize() decides', () => {
  allow(
    'the first rule that covers the container',
    CLERK,
    'token:read',
    ['/pci/high/'],
    'mask',
    [1],
  )
  allow('a rule for all below it', CLERK, 'token:read', ['/pci/high/eu/'], 'mask', [1])
  allow('a wider rule for the rest', CLERK, 'token:read', ['/pci/low/'], 'reveal', [2])
  allow(
    'a rule that grants it, past one that does not',
    CLERK,
    'token:read',
    ['/pci/'],
    'reveal',
    [2],
  )
  deny('where a rule covers but does not grant', CLERK, 'token:search', ['/pci/low/'])
  deny('where no rule covers', CLERK, 'token:read', ['/general/high/'])
  deny('above where a rule begins', CLERK, 'token:read', ['/'])
  deny('beside a container whose name begins alike', CLERK, 'token:read', ['/pcix/'])

  allow('plain permissions anywhere, masked', BACKEND, 'token:read', ['/x/'], 'mask', [0])
  allow('plain use revealed', BACKEND, 'token:use', ['/x/'], 'reveal', [0])
  allow('plain delete, with nothing to see', BACKEND, 'token:delete', ['/x/'], 'redact', [0])
  deny('what is not held', BACKEND, 'token:search', ['/x/'])
  allow('a rule before plain permissions', MIXED, 'token:read', ['/pci/'], 'reveal', [7])
  allow('plain permissions where rules are silent', MIXED, 'token:read', ['/x/'], 'mask', [0])
  allow('plain permissions a rule does not name', MIXED, 'token:delete', ['/pci/'], 'redact', [0])

  allow('to read on any container', CLERK, 'token:read', ['/x/', '/pci/'], 'reveal', [2])
  allow('to use on any container', CLERK, 'token:use', ['/x/', '/pii/'], 'redact', [3])
  allow(
    'the least generous of several',
    CLERK,
    'token:read',
    ['/pci/', '/pci/high/'],
    'mask',
    [2, 1],
  )
  allow('the least generous of all', CLERK, 'token:read', ['/pci/', '/pii/'], 'redact', [2, 3])
  deny('to create unless on every container', CLERK, 'token:create', ['/pii/', '/pci/'])
  allow('to create on every container', CLERK, 'token:create', ['/pii/', '/pii/a/'], 'redact', [3])
  deny('to update unless on every container', UPDATER, 'token:update', ['/a/', '/x/'])
  deny('to delete unless on every container', UPDATER, 'token:delete', ['/a/', '/x/'])
  allow(
    'nothing to be seen rather than a mask',
    CLERK,
    'token:read',
    ['/pci/high/', '/pii/'],
    'redact',
    [1, 3],
  )
  deny('to read on none of several', CLERK, 'token:read', ['/x/', '/y/'])

  allow('token:use for proxies', BACKEND, 'proxy:invoke', ['/x/'], 'reveal', [0])
  allow('token:use for reactors, by rule', CLERK, 'reactor:invoke', ['/pii/'], 'redact', [3])
  allow('proxy:invoke for proxies', PROXYIST, 'proxy:invoke', ['/x/'], 'reveal', [0])
  deny('proxy:invoke for reactors', PROXYIST, 'reactor:invoke', ['/x/'])
  deny('proxy:invoke for what else needs token:use', PROXYIST, 'token:use', ['/x/'])

  allow('management without containers', ADMIN, 'application:read', [], 'redact', [0])
  deny('management that is not held', ADMIN, 'application:create', [])
  allow('a rule when no container is in question', CLERK, 'token:use', [], 'redact', [3])
  deny('nothing held and no container in question', CLERK, 'token:delete', [])
  allow('a browser to create', BROWSER, 'token:create', ['/x/'], 'mask', [0])
  deny('a browser to read', BROWSER, 'token:read', ['/x/'])
  deny('a management key to read', { ...ADMIN, permissions: ['token:read'] }, 'token:read', ['/x/'])
})

test('authorize() records every decision in order, refusals included', () => {
  const context = contextWith(CLERK)
  authorize(context, 'token:read', ['/pci/'])
  assert.throws(() => authorize(context, 'token:delete', ['/pci/']), { code: 'permission_missing' })
  assert.equal(tryAuthorize(context, 'token:search', ['/x/']), null)
  assert.deepEqual(context.decisions, [
    {
      permission: 'token:read',
      containers: ['/pci/'],
      allowed: true,
      by: [2],
      granted: 'reveal',
    },
    { permission: 'token:delete', containers: ['/pci/'], allowed: false, by: [] },
    { permission: 'token:search', containers: ['/x/'], allowed: false, by: [] },
  ])
})

test('mayAnywhere() is true exactly when some container is granted', () => {
  fc.assert(
    fc.property(principal(), permission(), (who, what) => {
      const everywhere = [
        '/',
        ...who.rules.flatMap((it) => ('container' in it ? [it.container] : [])),
      ]
      const somewhere = everywhere.some((it) => tryAuthorize(contextWith(who), what, [it]) !== null)
      assert.equal(mayAnywhere(contextWith(who), what), somewhere)
    }),
  )
})

test('a rule grants nothing outside its container', () => {
  fc.assert(
    fc.property(accessRule(), permission(), container(), (it, what, where) => {
      fc.pre(!covers(it.container, where))
      assert.equal(tryAuthorize(contextWith({ rules: [it] }), what, [where]), null)
    }),
  )
})

test('a rule of lower priority changes nothing that a higher one decided', () => {
  fc.assert(
    fc.property(principal(), accessRule(), permission(), container(), (who, more, what, where) => {
      const before = contextWith({ ...who, permissions: [] })
      fc.pre(tryAuthorize(before, what, [where]) !== null)
      const after = contextWith({ ...before, rules: [...before.rules, { ...more, priority: 99 }] })
      assert.deepEqual(tryAuthorize(after, what, [where]), tryAuthorize(before, what, [where]))
    }),
  )
})

test('being in one more container never shows more', () => {
  fc.assert(
    fc.property(principal(), containers(), container(), (who, where, more) => {
      const shown = (it: readonly string[]): Transform | undefined =>
        tryAuthorize(contextWith(who), 'token:read', it)?.transform
      const before = shown(where)
      fc.pre(before !== undefined)
      const after = shown([...where, more])!
      assert.ok(TRANSFORMS.indexOf(after) <= TRANSFORMS.indexOf(before))
    }),
  )
})

test('to create, update and delete, every container has to be granted; else any one', () => {
  fc.assert(
    fc.property(principal(), permission(), containers(), (who, what, where) => {
      const each = where.map((it) => tryAuthorize(contextWith(who), what, [it]) !== null)
      const every = ['token:create', 'token:update', 'token:delete'].includes(what)
      const expected = every ? each.every(Boolean) : each.some(Boolean)
      assert.equal(tryAuthorize(contextWith(who), what, where) !== null, expected)
    }),
  )
})

test('an application does nothing its type may not, whatever its row says', () => {
  fc.assert(
    fc.property(principal(), permission(), containers(), (who, what, where) => {
      const stoodInFor = what.endsWith(':invoke') ? 'token:use' : what
      if (mayHold(who.type, what) || mayHold(who.type, stoodInFor)) return
      assert.equal(tryAuthorize(contextWith(who), what, where), null)
      assert.equal(mayAnywhere(contextWith(who), what), false)
    }),
  )
})

test('a public application never reads, finds, uses or deletes', () => {
  const beyond = fc.constantFrom<Permission>(
    'token:read',
    'token:search',
    'token:use',
    'token:delete',
    'proxy:invoke',
    'reactor:invoke',
  )
  fc.assert(
    fc.property(principal(), beyond, containers(), (who, what, where) => {
      assert.equal(tryAuthorize(contextWith({ ...who, type: 'public' }), what, where), null)
    }),
  )
})

function allow(
  name: string,
  who: Partial<Principal>,
  permission: Permission,
  containers: readonly string[],
  transform: Transform,
  by: readonly number[],
): void {
  test(`allow ${name}`, () => {
    const context = contextWith(who)
    const grant = authorize(context, permission, containers)
    assert.deepEqual(grant, { transform, internalId: undefined })
    const granted = transform
    assert.deepEqual(context.decisions, [{ permission, containers, allowed: true, by, granted }])
  })
}

function deny(
  name: string,
  who: Partial<Principal>,
  permission: Permission,
  containers: readonly string[],
): void {
  test(`deny ${name}`, () => {
    const context = contextWith(who)
    const act = (): unknown => authorize(context, permission, containers)
    assert.throws(act, { code: 'permission_missing' })
    assert.deepEqual(context.decisions, [{ permission, containers, allowed: false, by: [] }])
  })
}

function rule(
  priority: number,
  where: string,
  transform: Transform,
  permissions: readonly Permission[],
): AccessRule {
  return { description: '', priority, container: where, transform, permissions }
}

/** Few names and little depth, so that containers overlap. */
function container(): fc.Arbitrary<string> {
  return fc
    .array(fc.constantFrom('a', 'b', 'ab'), { maxLength: 3 })
    .map((names) => `/${names.map((it) => `${it}/`).join('')}`)
}

function containers(): fc.Arbitrary<string[]> {
  return fc.array(container(), { minLength: 1, maxLength: 3 })
}

function permission(): fc.Arbitrary<Permission> {
  return fc.constantFrom(...PERMISSIONS.map((it) => it.type))
}

function accessRule(): fc.Arbitrary<AccessRule> {
  return fc
    .tuple(container(), fc.constantFrom(...TRANSFORMS), fc.subarray(TOKEN_PERMISSIONS))
    .map(([where, transform, permissions]) => rule(1, where, transform, permissions))
}

function principal(): fc.Arbitrary<Pick<Principal, 'type' | 'permissions' | 'rules'>> {
  return fc.record({
    type: fc.constantFrom(...APPLICATION_TYPES),
    permissions: fc.subarray(PERMISSIONS.map((it) => it.type)),
    rules: fc
      .array(accessRule(), { maxLength: 4 })
      .map((rules) => rules.map((it, index) => ({ ...it, priority: index + 1 }))),
  })
}

const TOKEN_PERMISSIONS = PERMISSIONS.map((it) => it.type).filter((it) =>
  /^token:|:invoke$/.test(it),
)
