import { setUp } from '../../src/access/applications/set-up.ts'
import { fill } from '../../bench/fill.ts'
import { ask, sealOneOfEach } from '../rotation/one-of-each.ts'
import type { MigratedService } from './service.ts'

/** The keys and ids needed to query the furnished data. */
export interface Furnished {
  readonly management: string
  /** Of an application that may do everything with tokens, and sees them. */
  readonly owner: string
  /** Of a session. */
  readonly session: string
  /** Of another tenant, and of one that is deleted. */
  readonly other: string
  readonly gone: string
  readonly tokens: Readonly<Record<'named' | 'changing' | 'going' | 'shown', string>>
  readonly transaction: string
}

/** Length of a list that is too long for one commit. */
export const LONG = 300

export const ONCE = { 'BT-IDEMPOTENCY-KEY': 'asked for again' }
export const ASKED_ONCE = { type: 'token', data: 'made once' }
export const DUPLICATE = { type: 'token', data: 'a duplicate', deduplicate_token: true }

/** Makes `tokens` tokens and something of everything else that a vault can hold. */
export async function furnish(
  { url, world, keyProvider }: MigratedService,
  tokens: number,
): Promise<Furnished> {
  const [first, second, third] = [
    await setUp(world, keyProvider, { name: 'first', plan: 'enterprise' }),
    await setUp(world, keyProvider, { name: 'second', plan: 'enterprise' }),
    await setUp(world, keyProvider, { name: 'third', plan: 'enterprise' }),
  ]
  const management = first.apiKey
  await fill(world, first.tenantId, first.applicationId, tokens)
  const owner = await ownerOf(url, management)
  await sealOneOfEach(url, { write: owner }, management)
  const make = async (more: object, headers = {}, key = owner): Promise<string> => {
    const body = { type: 'token', data: 'x', ...more }
    return String((await ask(url, 'POST', '/tokens', key, body, headers))['id'])
  }

  const ids = {
    named: await make({
      id: 'é 0 name',
      metadata: { 'k\u0000': 'v\u0001', ['__proto__']: '1', 2: 'Ä' },
    }),
    changing: await make({ data: 'before', search_indexes: ['{{ data }}'], metadata: { of: 'x' } }),
    going: await make({ data: 'going', containers: ['/a/', '/b/c/'] }),
    shown: await make({ id: '01234567-0000-4000-8000-00000000000f', data: 'shown' }),
  }
  await make({ expires_at: '2099-01-01T00:00:00+02:00', mask: '{{ data | reveal_last: 1 }}' })
  await make(DUPLICATE)
  await make(ASKED_ONCE, ONCE)

  const long = Array.from({ length: LONG }, (_, n) => ({ type: 'token', data: `${n} of many` }))
  const transaction = await openTransaction()
  await ask(url, 'POST', '/tokenize', owner, long, within(transaction))
  await make({ data: 'alone' }, within(transaction))
  const changed = { data: 'after', metadata: { of: 'y' } }
  await ask(url, 'PATCH', `/tokens/${ids.changing}`, owner, changed, within(transaction))
  await ask(url, 'DELETE', `/tokens/${ids.going}`, owner, undefined, within(transaction))
  for (const end of ['commit', 'rollback']) {
    const ended = await openTransaction()
    await ask(url, 'POST', '/tokenize', owner, long, within(ended))
    await ask(url, 'POST', `/transactions/${ended}/${end}`, owner)
  }

  const other = await ownerOf(url, second.apiKey)
  await make({ id: 'é 0 name', data: 'of another' }, {}, other)
  await make({ data: 'of one that is gone' }, {}, await ownerOf(url, third.apiKey))
  await ask(url, 'DELETE', '/tenants/self', third.apiKey)
  const session = await openSession(url, management, owner)
  await claimOne({ world }, first.tenantId)
  return { management, owner, session, other, gone: third.apiKey, tokens: ids, transaction }

  async function openTransaction(): Promise<string> {
    return String((await ask(url, 'POST', '/transactions', owner))['id'])
  }
}

function within(transaction: string): Record<string, string> {
  return { 'BT-TRANSACTION-ID': transaction }
}

async function ownerOf(url: string, management: string): Promise<string> {
  const all = ['create', 'read', 'update', 'delete', 'search', 'use'].map((it) => `token:${it}`)
  const rule = { priority: 1, container: '/', transform: 'reveal', permissions: all }
  const application = { name: 'owner', type: 'private', rules: [rule] }
  return String((await ask(url, 'POST', '/applications', management, application))['key'])
}

async function openSession(url: string, management: string, owner: string): Promise<string> {
  const shop = { name: 'shop', type: 'public', permissions: ['token:create'] }
  const { key } = await ask(url, 'POST', '/applications', management, shop)
  const { session_key: session, nonce } = await ask(url, 'POST', '/sessions', String(key))
  const rule = { priority: 1, container: '/', transform: 'reveal', permissions: ['token:read'] }
  const expires = new Date(Date.now() + 50 * 60 * 1000).toISOString()
  await ask(url, 'POST', '/sessions/authorize', owner, {
    nonce,
    rules: [rule],
    expires_at: expires,
  })
  return String(session)
}

/** Claims a job as a server that has since died. */
async function claimOne(
  { world }: Pick<MigratedService, 'world'>,
  tenantId: string,
): Promise<void> {
  const now = world.clock.now()
  const due = { stage: 'run', now, limit: 1, without: [] } as const
  const [job] = await world.store.jobs.due(tenantId, due)
  const { id, revision } = job!
  await world.store.commit(tenantId, [{ kind: 'claim-job', id, revision, dueAt: now + 3_600_000 }])
}
