/**
 * Every operation on tokens, asked by every kind of key with every kind of grant, about a token in every
 * relation to the caller: thousands of cells, each held against a model made from docs/interface.md.
 */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { ApplicationType } from '../../src/base/access.ts'
import type { Json, JsonObject } from '../../src/base/json.ts'
import {
  heldSomewhere,
  listedFor,
  shownTo,
  type Granted,
  type GrantedCondition,
  type GrantedRule,
  type Holder,
  type TokenLocation,
  type ShownAs,
} from '../kit/rights-model.ts'
import { holdBody } from '../kit/held-request.ts'
import type { Method, Reply } from '../kit/still-vault.ts'
import {
  EVERYTHING,
  EVERY_TOKEN_PERMISSION,
  HOME,
  MOVED_TO,
  pathOf,
  RELATIONS,
  relationStage,
  SECOND_HOME,
  transactionHeader,
  type Header,
  type Relation,
  type RelationStage,
  type RelationSubject,
} from '../kit/token-relations.ts'

interface MatrixOperation {
  readonly name: string
  readonly permission: string
  readonly request: (subject: RelationSubject) => MatrixRequest
  /** Expected response to a holder of the permission, in any container. */
  readonly expected: (holder: Holder, subject: RelationSubject) => string
  /** Renders a 2xx response in the notation of `expected`. */
  readonly shown: (reply: Reply) => string
  /** Whether a 2xx leaves the token otherwise than it was. */
  readonly changes?: boolean
}

interface MatrixRequest {
  readonly method: Method
  readonly path: string
  readonly body?: Json
}

const REFUSED = '403 permission_missing'
const NO_TOKEN = '404 token_not_found'

const OPERATIONS: readonly MatrixOperation[] = [
  {
    name: 'create',
    permission: 'token:create',
    request: ({ id }) => ({ method: 'POST', path: '/tokens', body: { id, ...CREATED } }),
    expected: (holder, subject) => making(holder, subject, (shown) => `201 ${shown}`),
    shown: shownData,
    changes: true,
  },
  {
    name: 'tokenize',
    permission: 'token:create',
    request: ({ id }) => ({
      method: 'POST',
      path: '/tokenize',
      body: { type: 'token', id, ...CREATED },
    }),
    expected: (holder, subject) =>
      making(holder, subject, (_, transform) => {
        return `200 ${dataAs(transform === 'redact' ? 'redact' : 'mask', CREATED.data)}`
      }),
    shown: (reply) => {
      const { data, mask } = reply.json()
      assert.equal(data, undefined)
      return `200 ${JSON.stringify(mask ?? null)}`
    },
    changes: true,
  },
  {
    name: 'get',
    permission: 'token:read',
    request: ({ id }) => ({ method: 'GET', path: pathOf(id) }),
    expected: (holder, { read, data }) => {
      if (read === null) return NO_TOKEN
      const transform = shownTo(holder, 'token:read', read)
      return transform === null ? REFUSED : `200 ${dataAs(transform, data)}`
    },
    shown: shownData,
  },
  {
    name: 'detokenize',
    permission: 'token:read',
    request: ({ id }) => ({ method: 'POST', path: '/detokenize', body: { it: `{{ ${id} }}` } }),
    expected: (holder, { read, data }) => {
      if (read === null) return '400 detokenize_tokens_unknown'
      const transform = shownTo(holder, 'token:read', read)
      return transform === null ? REFUSED : `200 ${dataAs(transform, data)}`
    },
    shown: (reply) => `200 ${JSON.stringify(reply.json()['it'])}`,
  },
  {
    name: 'patch',
    permission: 'token:update',
    request: ({ id }) => ({ method: 'PATCH', path: pathOf(id), body: { metadata: { a: 'x' } } }),
    expected: (holder, subject) => changing(holder, 'token:update', subject, []),
    shown: shownData,
  },
  {
    name: 'patch that moves',
    permission: 'token:update',
    request: ({ id }) => ({
      method: 'PATCH',
      path: pathOf(id),
      body: { containers: [SECOND_HOME] },
    }),
    expected: (holder, subject) => changing(holder, 'token:update', subject, [SECOND_HOME]),
    shown: shownData,
    changes: true,
  },
  {
    name: 'delete',
    permission: 'token:delete',
    request: ({ id }) => ({ method: 'DELETE', path: pathOf(id) }),
    expected: (holder, subject) => {
      const answer = changing(holder, 'token:delete', subject, [])
      return answer.startsWith('200') ? '204' : answer
    },
    shown: (reply) => {
      assert.equal(reply.text, '')
      return '204'
    },
    changes: true,
  },
  listing('list', 'token:read', true, (id) => get(`/tokens?size=100&id=`, id)),
  listing('search', 'token:search', true, (id) => search('/tokens/search', id)),
  listing('v2 list', 'token:read', false, (id) => get(`/v2/tokens?size=100&id=`, id)),
  listing('v2 search', 'token:search', false, (id) => search('/v2/tokens/search', id)),
]

/** Each list and search, without anything to narrow it. */
const WHOLE_LISTS: readonly (MatrixRequest & { permission: string; counted: boolean })[] = [
  { method: 'GET', path: '/tokens?size=100', permission: 'token:read', counted: true },
  { method: 'GET', path: '/v2/tokens?size=100', permission: 'token:read', counted: false },
  {
    method: 'POST',
    path: '/tokens/search',
    body: { size: 100 },
    permission: 'token:search',
    counted: true,
  },
  {
    method: 'POST',
    path: '/v2/tokens/search',
    body: { query: 'type:token AND container:/*', size: 100 },
    permission: 'token:search',
    counted: false,
  },
]

const CREATED = {
  data: 'plaintextofmine1999',
  mask: '{{ data | reveal_last: 4 }}',
  containers: [HOME],
}

/** Every relation as it is, and those to which a transaction makes a difference within one, too. */
const SUBJECTS: readonly [Relation, Header][] = [
  ...RELATIONS.map((it): [Relation, Header] => [it, 'none']),
  ['uncommitted', 'the one of the token'],
  ['moved by a transaction', 'the one of the token'],
  ['deleted by a transaction', 'the one of the token'],
  ['made and deleted by a transaction', 'the one of the token'],
  ['own', 'another'],
  ['uncommitted', 'another'],
  ['moved by a transaction', 'another'],
  ['own', 'one of the other tenant'],
  ['uncommitted', 'one of the other tenant'],
  ['never made', 'one of the other tenant'],
]

/** Enough for a permission held nowhere: the request is refused before any lookup. */
const SOME_SUBJECTS: readonly [Relation, Header][] = [
  ['own', 'none'],
  ['foreign', 'none'],
  ['never made', 'none'],
  ['uncommitted', 'the one of the token'],
  ['own', 'one of the other tenant'],
]

/** Where a rule may be, seen from the token's container, and what it shows. */
const RULES: readonly [container: string, shown: readonly ShownAs[]][] = [
  [HOME, ['redact', 'mask', 'reveal']],
  ['/pci/', ['redact', 'mask', 'reveal']],
  ['/', ['mask']],
  [`${HOME}deeper/`, ['reveal']],
  ['/pci/low/', ['reveal']],
  ['/pci/hig/', ['reveal']],
  ['/pci/higher/', ['reveal']],
  [MOVED_TO, ['reveal']],
  [SECOND_HOME, ['mask', 'reveal']],
]

/** Permissions that do not concern tokens directly: alone they allow nothing here. */
const NOTHING = { private: 'proxy:invoke', management: 'application:read' } as const

let stage: RelationStage
/** Of a public application, which opens the sessions. */
let opener: string | null
let untouched: string
/** By operation and refusal: every answer that was given. */
const refusals = new Map<string, Set<string>>()
const cells: string[] = []
const refusedGrants: string[] = []

beforeEach(async () => {
  stage = await relationStage()
  opener = await keyFor('public', { permissions: ['token:create'] })
  untouched = await stage.foreignState()
})
afterEach(async () => {
  assert.equal(await stage.foreignState(), untouched, 'the other tenant lost something')
  await stage.vault.close()
})

describe('every operation on tokens answers as the page says', () => {
  for (const permission of EVERY_TOKEN_PERMISSION) {
    test(`to private applications that hold ${permission}`, async () => {
      for (const [name, granted] of grantsOf(permission)) {
        const key = await keyFor('private', granted)
        await checkAll(`private, ${permission}, ${name}`, key!, [granted])
      }
    })

    test(`to sessions that hold ${permission}`, async () => {
      for (const [name, granted] of [...grantsOf(permission), ...conditionsOf(permission)]) {
        const key = await sessionWith(granted, stage.adminKey)
        await checkAll(`session, ${permission}, ${name}`, key, [granted, { rules: [EVERYTHING] }])
      }
    })

    test(`to sessions that hold ${permission} from an application that has less by now`, async () => {
      const granted = { rules: [rule('/', 'reveal', [permission])] }
      for (const [name, left] of lessThan(permission)) {
        const grantor = await keyFor('private', { rules: [EVERYTHING] })
        const key = await sessionWith(granted, grantor!)
        await grantInstead(grantor!, left)
        await checkAll(`session, ${permission}, ${name}`, key, [granted, left])
      }
    })

    test(`to private applications that held everything when the headers came, and by the body hold only ${permission}`, async () => {
      for (const [name, granted] of grantsOf(permission)) {
        const key = await keyFor('private', { rules: [EVERYTHING] })
        await checkHeld(`private, ${permission} at last, ${name}`, key!, granted)
      }
    })

    test(`to public applications that hold ${permission}, or are refused it`, async () => {
      const may = ['token:create', 'token:update'].includes(permission)
      for (const [name, granted] of grantsOf(permission)) {
        const able = granted.permissions ?? granted.rules!.flatMap((it) => it.permissions)
        if (able.every((it) => ['token:create', 'token:update'].includes(it))) {
          const key = await keyFor('public', granted)
          await checkAll(`public, ${permission}, ${name}`, key!, [granted])
        } else await checkRefusedGrant('public', granted)
      }
      assert.equal(
        cells.some((it) => it.startsWith(`public, ${permission}`)),
        may,
      )
    })

    test(`to management applications: they are refused ${permission}`, async () => {
      for (const [, granted] of grantsOf(permission)) await checkRefusedGrant('management', granted)
    })
  }

  for (const type of ['private', 'management'] as const) {
    test(`to ${type} applications that hold nothing of tokens`, async () => {
      const granted = { permissions: [NOTHING[type]] }
      const key = await keyFor(type, granted)
      await checkAll(`${type}, nothing`, key!, [granted], true)
    })
  }

  test('to sessions that are not authorised', async () => {
    const { key } = await openSession()
    await checkAll('session, nothing', key, [{}], true)
  })

  test('refusals are the same bytes for whatever reason there is no token', () => {
    const different = [...refusals].filter(([, texts]) => texts.size !== 1)
    assert.deepEqual(different, [])
    const names = [...refusals.keys()]
    for (const name of ['get', 'patch', 'patch that moves', 'delete']) {
      assert.ok(names.includes(`${name}: ${NO_TOKEN}`), `${name} never met what is not there`)
    }
  })

  test('there were thousands of cells, with every outcome', (t) => {
    t.diagnostic(`${cells.length} cells, ${refusedGrants.length} grants refused`)
    assert.ok(cells.length > 10_000, `only ${cells.length} cells`)
    assert.equal(new Set(cells).size, cells.length)
  })
})

/** Asks everything about every subject; about some where a permission is held nowhere, unless `thorough`. */
async function checkAll(
  name: string,
  key: string,
  holder: Holder,
  thorough = false,
): Promise<void> {
  const wrong: string[] = []
  for (const operation of OPERATIONS) {
    const held = heldSomewhere(holder, operation.permission)
    for (const [relation, header] of held || thorough ? SUBJECTS : SOME_SUBJECTS) {
      const subject = stage.subject(relation, header)
      const cell = `${name}: ${operation.name}, ${relation}, transaction: ${header}`
      const expected = held ? operation.expected(holder, subject) : REFUSED
      const reply = await send(key, operation.request(subject), subject.transaction)
      const actual = outcomeOf(reply, operation.shown)
      if (actual !== expected) wrong.push(`${cell}: expected ${expected}, got ${actual}`)
      if (showsMore(reply, expected)) wrong.push(`${cell}: shows plaintext`)
      cells.push(cell)
      if (reply.status >= 400) {
        // A key with access to some container learns which of the tokens it named it may not use; other keys do not
        // learn that such a token exists.
        const placed = operation.name === 'detokenize' && actual === REFUSED && held
        // These two learn which type of application can do what theirs never can.
        const type = /^(?:public|management),/.exec(name)?.[0] ?? ''
        const to = actual === REFUSED ? type : ''
        const refusal = `${to}${operation.name}: ${actual}${placed ? ', held elsewhere' : ''}`
        const known = refusals.get(refusal) ?? new Set()
        refusals.set(refusal, known.add(bytesOf(reply)))
      } else if (operation.changes === true || changesMore(operation, subject)) {
        await stage.restore(subject)
      }
    }
  }
  for (const list of WHOLE_LISTS) {
    const cell = `${name}: ${list.method} ${list.path}, all`
    const reply = await send(key, list, undefined)
    const expected = heldSomewhere(holder, list.permission)
      ? found(holder, list.permission, RELATIONS, list.counted)
      : REFUSED
    const actual = outcomeOf(reply, (it) => listed(it, list.counted))
    if (actual !== expected) wrong.push(`${cell}: expected ${expected}, got ${actual}`)
    if (showsMore(reply, expected)) wrong.push(`${cell}: shows plaintext`)
    cells.push(cell)
  }
  assert.equal(wrong.length, 0, `${wrong.length} wrong:\n${wrong.slice(0, 20).join('\n')}`)
}

/** Asks everything that has a body about some subjects, and narrows the application to `granted` before the bodies are sent. */
async function checkHeld(name: string, key: string, granted: Granted): Promise<void> {
  const wrong: string[] = []
  for (const operation of OPERATIONS) {
    // A subject may get another id when it is restored.
    const subjects = SOME_SUBJECTS.map(([relation, header]) => stage.subject(relation, header))
    if (operation.request(subjects[0]!).body === undefined) continue
    await grantInstead(key, { rules: [EVERYTHING] })
    const releases = await Promise.all(subjects.map((it) => hold(key, operation, it)))
    await grantInstead(key, granted)
    for (const [at, subject] of subjects.entries()) {
      const cell = `${name}: ${operation.name}, ${subject.relation}, transaction: ${subject.header}`
      const may = heldSomewhere([granted], operation.permission)
      const expected = may ? operation.expected([granted], subject) : REFUSED
      const reply = await releases[at]!()
      const actual = outcomeOf(reply, operation.shown)
      if (actual !== expected) wrong.push(`${cell}: expected ${expected}, got ${actual}`)
      if (showsMore(reply, expected)) wrong.push(`${cell}: shows plaintext`)
      cells.push(cell)
      const changed = operation.changes === true || changesMore(operation, subject)
      if (reply.status < 400 && changed) await stage.restore(subject)
    }
  }
  assert.equal(wrong.length, 0, `${wrong.length} wrong:\n${wrong.slice(0, 20).join('\n')}`)
}

async function hold(
  key: string,
  operation: MatrixOperation,
  subject: RelationSubject,
): Promise<() => Promise<Reply>> {
  const { method, path, body } = operation.request(subject)
  const headers = { 'bt-trace-id': 'same', ...transactionHeader(subject.transaction) }
  return await holdBody(stage.vault, method, path, { key, body: body!, headers })
}

/** Replaces the rights of the application that holds `key`. */
async function grantInstead(key: string, granted: Granted): Promise<void> {
  const own = await stage.vault.call('GET', '/applications/key', { key })
  const path = `/applications/${own.json()['id'] as string}`
  const body = { name: 'less', ...asJson(granted) }
  const put = await stage.vault.call('PUT', path, { key: stage.vault.managementKey, body })
  assert.equal(put.status, 200, put.text)
}

/** A small change locks the token when it is part of a transaction that the token is not in. */
function changesMore({ permission }: MatrixOperation, { header }: RelationSubject): boolean {
  return permission === 'token:update' && header === 'another'
}

async function checkRefusedGrant(type: ApplicationType, granted: Granted): Promise<void> {
  const key = await keyFor(type, granted)
  assert.equal(key, null)
  refusedGrants.push(type)
}

function making(
  holder: Holder,
  { header, taken }: RelationSubject,
  success: (shown: string, transform: ShownAs) => string,
): string {
  if (header === 'one of the other tenant') return '404 transaction_not_found'
  const transform = shownTo(holder, 'token:create', { id: null, containers: [HOME] })
  if (transform === null) return REFUSED
  if (taken) return '409 token_id_taken'
  return success(dataAs(transform, CREATED.data), transform)
}

function changing(
  holder: Holder,
  permission: string,
  { header, change, locked, data }: RelationSubject,
  to: readonly string[],
): string {
  if (header === 'one of the other tenant') return '404 transaction_not_found'
  if (change === null) return NO_TOKEN
  const place: TokenLocation = { id: change.id, containers: [...change.containers, ...to] }
  const transform = shownTo(holder, permission, place)
  if (transform === null) return REFUSED
  if (locked) return '409 token_locked'
  return `200 ${dataAs(transform, data)}`
}

function listing(
  name: string,
  permission: string,
  counted: boolean,
  request: (id: string) => MatrixRequest,
): MatrixOperation {
  return {
    name,
    permission,
    request: ({ id }) => request(id),
    expected: (holder, { relation }) => found(holder, permission, [relation], counted),
    shown: (reply) => listed(reply, counted),
  }
}

/** Summarizes a list of these: the count, the ids, and the data of each. */
function found(
  holder: Holder,
  permission: string,
  relations: readonly Relation[],
  counted: boolean,
): string {
  const seen = relations.flatMap((relation) => {
    const { read, id, data } = stage.subject(relation, 'none')
    if (read === null || !listedFor(holder, permission, read)) return []
    return [`${id}: ${dataAs(shownTo(holder, permission, read)!, data)}`]
  })
  return `200 ${counted ? seen.length : 'uncounted'} ${seen.toSorted().join(', ')}`
}

function listed(reply: Reply, counted: boolean): string {
  const { pagination, data } = reply.json() as { pagination: JsonObject; data: JsonObject[] }
  const seen = data.map((it) => `${it['id'] as string}: ${JSON.stringify(it['data'] ?? null)}`)
  // There must be no next page.
  assert.equal(pagination['next'], undefined)
  const total = counted ? (pagination['total_items'] as number) : 'uncounted'
  return `200 ${total} ${seen.toSorted().join(', ')}`
}

function shownData(reply: Reply): string {
  return `${reply.status} ${JSON.stringify(reply.json()['data'] ?? null)}`
}

function dataAs(shown: ShownAs, data: string): string {
  const masked = data.slice(0, -4).replaceAll(/./g, 'X') + data.slice(-4)
  return JSON.stringify({ redact: null, mask: masked, reveal: data }[shown])
}

function outcomeOf(reply: Reply, shown: (reply: Reply) => string): string {
  if (reply.status >= 400) return `${reply.status} ${reply.json()['code'] as string}`
  return shown(reply)
}

function showsMore(reply: Reply, expected: string): boolean {
  return reply.text.includes('plaintext') && !expected.includes('plaintext')
}

function bytesOf(reply: Reply): string {
  const { date: _date, ...headers } = reply.headers
  return JSON.stringify([reply.text, headers])
}

function get(path: string, id: string): MatrixRequest {
  return { method: 'GET', path: `${path}${encodeURIComponent(id)}` }
}

function search(path: string, id: string): MatrixRequest {
  return { method: 'POST', path, body: { query: `id:"${id}"` } }
}

async function send(
  key: string,
  { method, path, body }: MatrixRequest,
  transaction: string | undefined,
): Promise<Reply> {
  return await stage.vault.call(method, path, {
    key,
    headers: { 'bt-trace-id': 'same', ...transactionHeader(transaction) },
    ...(body === undefined ? {} : { body }),
  })
}

/** Every way to be given a permission, alone and beside others; few for what no operation here asks for. */
function grantsOf(permission: string): [name: string, granted: Granted][] {
  const others = EVERY_TOKEN_PERMISSION.filter((it) => it !== permission)
  const single = RULES.flatMap(([container, transforms]) =>
    transforms.map((transform): [string, Granted] => [
      `${transform} on ${container}`,
      { rules: [rule(container, transform, [permission])] },
    ]),
  )
  const several = (...rules: [string, ShownAs, string[]?][]): Granted => ({
    rules: rules.map(([container, transform, permissions = [permission]], at) =>
      rule(container, transform, permissions, at + 1),
    ),
  })
  if (permission === 'token:use') {
    return [
      ['plain', { permissions: [permission] }],
      ['shown everywhere', several(['/', 'reveal'])],
      ['all others, not this', { permissions: others }],
    ]
  }
  return [
    ['plain', { permissions: [permission] }],
    ...single,
    ['both its homes', several([HOME, 'reveal'], [SECOND_HOME, 'mask'])],
    ['both its homes, the second hidden', several([HOME, 'mask'], [SECOND_HOME, 'redact'])],
    ['hidden here, shown above', several([HOME, 'redact'], ['/pci/', 'reveal'])],
    ['shown everywhere before hidden here', several(['/', 'reveal'], [HOME, 'redact'])],
    ['above first by order, here first by priority', { rules: backwards(permission) }],
    ['others here, this everywhere', several([HOME, 'reveal', others], ['/', 'mask'])],
    ['others here, this elsewhere', several([HOME, 'reveal', others], [MOVED_TO, 'mask'])],
    ['all others, not this', { permissions: others }],
    ['plain, hidden here', { permissions: [permission], ...several([HOME, 'redact']) }],
    ['plain, shown elsewhere', { permissions: [permission], ...several([MOVED_TO, 'reveal']) }],
  ]
}

function backwards(permission: string): GrantedRule[] {
  return [rule('/', 'redact', [permission], 2), rule(HOME, 'reveal', [permission], 1)]
}

/** Grants only a session can have: rules with conditions on more than the container. */
function conditionsOf(permission: string): [name: string, granted: Granted][] {
  const { id } = stage.subject('own', 'none')
  const each: Record<string, GrantedCondition[]> = {
    'this id': [when('id', 'equals', id)],
    'ids like this': [when('id', 'starts_with', 'own ')],
    'ids that are part of this': [when('id', 'equals', 'own')],
    'this container': [when('container', 'equals', HOME)],
    'the container above, and not below': [when('container', 'equals', '/pci/')],
    'below the container above': [when('container', 'starts_with', '/pci/')],
    'this id in this container': [
      when('id', 'starts_with', 'own '),
      when('container', 'equals', HOME),
    ],
    'this id elsewhere': [
      when('id', 'starts_with', 'own '),
      when('container', 'starts_with', MOVED_TO),
    ],
    'two places, of which it is in each': [
      when('container', 'equals', HOME),
      when('container', 'equals', SECOND_HOME),
    ],
  }
  return Object.entries(each).map(([name, conditions]) => [
    `when ${name}`,
    { rules: [{ priority: 1, conditions, transform: 'reveal', permissions: [permission] }] },
  ])
}

function when(
  attribute: GrantedCondition['attribute'],
  operator: GrantedCondition['operator'],
  value: string,
): GrantedCondition {
  return { attribute, operator, value }
}

function lessThan(permission: string): [name: string, left: Granted][] {
  const others = EVERY_TOKEN_PERMISSION.filter((it) => it !== permission)
  return [
    ['of a grantor with the plain permission', { permissions: [permission] }],
    ['of a grantor with a rule here', { rules: [rule(HOME, 'redact', [permission])] }],
    ['of a grantor with a rule elsewhere', { rules: [rule(MOVED_TO, 'reveal', [permission])] }],
    ['of a grantor with all others', { permissions: others }],
  ]
}

function rule(
  container: string,
  transform: ShownAs,
  permissions: readonly string[],
  priority = 1,
): GrantedRule {
  return { priority, container, transform, permissions }
}

/** Makes an application and returns its key; null when it is refused the permissions. */
async function keyFor(type: ApplicationType, granted: Granted): Promise<string | null> {
  const body = { name: 'matrix', type, ...asJson(granted) }
  const key = stage.vault.managementKey
  const reply = await stage.vault.call('POST', '/applications', { key, body })
  if (reply.status === 400) return null
  assert.equal(reply.status, 201, reply.text)
  return reply.json()['key'] as string
}

async function openSession(): Promise<{ key: string; nonce: string }> {
  const reply = await stage.vault.call('POST', '/sessions', { key: opener! })
  assert.equal(reply.status, 201, reply.text)
  const { session_key: key, nonce } = reply.json()
  return { key: key as string, nonce: nonce as string }
}

async function sessionWith(granted: Granted, grantor: string): Promise<string> {
  const { key, nonce } = await openSession()
  const expiresAt = new Date(stage.vault.world.clock.now() + 50 * 60_000).toISOString()
  const body = { nonce, expires_at: expiresAt, ...asJson(granted) }
  const reply = await stage.vault.call('POST', '/sessions/authorize', { key: grantor, body })
  assert.equal(reply.status, 200, reply.text)
  return key
}

function asJson(granted: Granted): JsonObject {
  return JSON.parse(JSON.stringify(granted)) as JsonObject
}
