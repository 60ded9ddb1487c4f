import assert from 'node:assert/strict'
import type { Keys } from '../../crash/vault-client.ts'

export async function send(
  url: string,
  method: string,
  path: string,
  key: string,
  body?: object,
  headers: Record<string, string> = {},
): Promise<{ readonly status: number; readonly text: string }> {
  const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
  const reply = await fetch(url + path, {
    method,
    headers: { 'BT-API-KEY': key, ...headers, ...(body && { 'content-type': type }) },
    ...(body && { body: JSON.stringify(body) }),
  })
  return { status: reply.status, text: await reply.text() }
}

/** As send(); rejects with an AssertionError when it is answered and not with success. */
export async function ask(...asked: Parameters<typeof send>): Promise<Record<string, unknown>> {
  const { status, text } = await send(...asked)
  const [, method, path] = asked
  assert.ok(status < 300, `${method} ${path}: ${status} ${text}`)
  return text === '' ? {} : (JSON.parse(text) as Record<string, unknown>)
}

/**
 * Has a vault seal one of each kind of sealed data, part of it in a transaction that stays open. `key` is a
 * management key.
 */
export async function sealOneOfEach(
  url: string,
  { write }: Pick<Keys, 'write'>,
  key: string,
): Promise<void> {
  const once = { 'BT-IDEMPOTENCY-KEY': 'once' }
  const card = {
    number: '4242424242424242',
    expiration_month: 12,
    expiration_year: 2040,
    cvc: '123',
  }
  const made = await ask(url, 'POST', '/tokens', write, { type: 'card', data: card }, once)
  const manage = await ask(url, 'POST', '/applications', key, {
    name: 'all',
    type: 'management',
    permissions: ['proxy:create', 'reactor:create', 'reactor:update'],
  })
  const manager = String(manage['key'])
  const proxy = { name: 'p', destination_url: 'https://example.com/', configuration: { a: 'b' } }
  await ask(url, 'POST', '/proxies', manager, proxy)
  const code = 'module.exports = async () => ({ raw: {} })'
  const settings = { name: 'r', code, configuration: { c: 'd' } }
  const reactor = await ask(url, 'POST', '/reactors', manager, settings)
  const user = { name: 'user', type: 'private', permissions: ['token:use'] }
  const { key: users } = await ask(url, 'POST', '/applications', key, user)
  // The job does not run here: it stays queued.
  await ask(url, 'POST', `/reactors/${String(reactor['id'])}/react-async`, String(users), {})
  await ask(url, 'GET', '/callbacks/secret', manager)
  const transaction = await ask(url, 'POST', '/transactions', write)
  const within = { 'BT-TRANSACTION-ID': String(transaction['id']) }
  const later = { data: { ...card, cvc: '321' } }
  await ask(url, 'PATCH', `/tokens/${String(made['id'])}`, write, later, within)
}
