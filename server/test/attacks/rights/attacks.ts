/**
 * Attacks on the moment at which rights are decided, and on what an answer gives away. Each returns whether it got what it must not
 * get. They use only what the service offers over HTTP, so that they run against any version of it.
 */
import type { JsonObject } from '../../../src/base/json.ts'
import { idOf, type Attacked, type MadeApplication } from './stage.ts'

export interface RightsAttack {
  /** What the attacker is after. */
  readonly name: string
  readonly succeeds: (on: Attacked) => Promise<boolean>
  /** Takes half a minute. */
  readonly slow?: true
}

const SECRET = '4111111111111111'

/** Attacks that use rights after they were taken away. */
const LATE: readonly RightsAttack[] = [
  {
    name: 'a held POST /applications of a deleted management application makes a working key',
    succeeds: async (on) => {
      const manager = await on.application({
        name: 'manager',
        type: 'management',
        permissions: ['application:create'],
      })
      const held = await on.hold('POST', '/applications', {
        key: manager.key,
        body: { name: 'made late', type: 'private', permissions: ['token:read'] },
      })
      await on.deleteApplication(manager)
      const reply = await held.release()
      const key = reply.status === 201 ? (reply.json()['key'] as string) : 'none'
      return (await on.call('GET', '/applications/key', { key })).status === 200
    },
  },
  {
    name: 'held POST /detokenize requests of a deleted application return plaintext',
    succeeds: async (on) => {
      const id = await on.token(SECRET)
      const reader = await readerOf(on)
      const all = await Promise.all(
        Array.from({ length: 20 }, () => {
          return on.hold('POST', '/detokenize', { key: reader.key, body: { card: `{{ ${id} }}` } })
        }),
      )
      await on.deleteApplication(reader)
      const replies = await Promise.all(all.map((it) => it.release()))
      return replies.some((it) => it.text.includes(SECRET))
    },
  },
  {
    name: 'a held POST /detokenize of a narrowed key returns plaintext',
    succeeds: async (on) => {
      const id = await on.token(SECRET)
      const reader = await readerOf(on)
      const body = { card: `{{ ${id} }}` }
      const held = await on.hold('POST', '/detokenize', { key: reader.key, body })
      await narrow(on, reader, ['token:create'])
      return (await held.release()).text.includes(SECRET)
    },
  },
  {
    name: 'a held POST /tokens of an expired key stores a token',
    succeeds: async (on) => {
      const expiresAt = new Date(Date.now() + 1500).toISOString()
      const writer = await on.application({
        name: 'writer',
        type: 'private',
        permissions: ['token:create'],
        expires_at: expiresAt,
      })
      const body = { type: 'token', data: SECRET }
      const held = await on.hold('POST', '/tokens', { key: writer.key, body })
      let status = 200
      while (status === 200) {
        await new Promise((resolve) => setTimeout(resolve, 100))
        ;({ status } = await on.call('GET', '/applications/key', { key: writer.key }))
      }
      return (await held.release()).status === 201
    },
  },
  {
    name: 'a held proxy request of a deleted application sends plaintext',
    succeeds: async (on) => {
      const id = await on.token(`held-${SECRET}`)
      const sender = await on.application({
        name: 'sender',
        type: 'private',
        permissions: ['token:use'],
      })
      const held = await on.hold('POST', '/proxy', {
        key: sender.key,
        body: { card: `{{ ${id} }}` },
        headers: { 'bt-proxy-url': on.destination.url },
      })
      await on.deleteApplication(sender)
      await held.release()
      return on.destination.received.some((it) => it.includes(`held-${SECRET}`))
    },
  },
  {
    name: 'a replay with an idempotency key repeats an answer from a container that was taken away',
    succeeds: async (on) => {
      const rule = (container: string) => ({
        description: container,
        priority: 1,
        container,
        transform: 'reveal',
        permissions: ['token:create', 'token:read'],
      })
      const writer = await on.application({
        name: 'writer',
        type: 'private',
        rules: [rule('/first/')],
      })
      const create = () =>
        on.call('POST', '/tokens', {
          key: writer.key,
          body: { type: 'token', data: SECRET, containers: ['/first/'] },
          headers: { 'bt-idempotency-key': 'once' },
        })
      await create()
      const body = { name: 'writer', rules: [rule('/second/')] }
      const path = `/applications/${writer.id}`
      const { status } = await on.call('PUT', path, { key: on.managementKey, body })
      if (status !== 200) throw new Error(`Cannot narrow a key: ${status}`)
      return (await create()).text.includes(SECRET)
    },
  },
  {
    name: 'a proxied body goes on after its key was revoked',
    succeeds: async (on) => {
      const sender = await on.application({
        name: 'sender',
        type: 'private',
        permissions: ['token:use'],
      })
      const headers = {
        'bt-proxy-url': on.destination.url,
        'content-type': 'application/octet-stream',
        'transfer-encoding': 'chunked',
      }
      const sent = on.open('POST', '/proxy', { key: sender.key, headers })
      sent.on('response', (it) => it.resume())
      sent.write('begun')
      await new Promise((resolve) => setTimeout(resolve, 200))
      await on.deleteApplication(sender)
      await new Promise((resolve) => setTimeout(resolve, 2500))
      sent.end(' sent late')
      await new Promise((resolve) => setTimeout(resolve, 300))
      return on.destination.received.some((it) => it.includes('sent late'))
    },
  },
  {
    name: 'what a public key wrote in a transaction is committed after the key was revoked',
    succeeds: async (on) => {
      const browser = await browserOf(on)
      const key = on.owner.key
      const transaction = idOf(await on.call('POST', '/transactions', { key }))
      const body = { type: 'token', data: SECRET }
      const headers = { 'bt-transaction-id': transaction }
      const id = idOf(await on.call('POST', '/tokens', { key: browser.key, body, headers }))
      await on.deleteApplication(browser)
      await on.call('POST', `/transactions/${transaction}/commit`, { key })
      return (await on.call('GET', `/tokens/${id}`, { key })).status === 200
    },
  },
  {
    name: 'a proxied body trickles in for longer than any request may take',
    slow: true,
    succeeds: async (on) => {
      const held = await on.hold('POST', '/proxy', {
        key: on.owner.key,
        body: { trickles: 'for 36 seconds' },
        headers: { 'bt-proxy-url': on.destination.url },
      })
      const reply = await held.release(1200).catch(() => null)
      return reply?.status === 200
    },
  },
]

/** Attacks that learn something about data that the key may not read. */
const ORACLES: readonly RightsAttack[] = [
  {
    name: 'the length of a token that a key may not read shows in POST /detokenize',
    succeeds: async (on) => {
      const lengths = await Promise.all(
        [1, 200_000].map((it) => on.token('x'.repeat(it), '/other/')),
      )
      const [reader, ballast] = await ballastOf(on)
      const replies = await Promise.all(
        lengths.map((id) => {
          const payload = [...ballast, id].map((it) => `{{ ${it} }}`)
          return on.call('POST', '/detokenize', { key: reader.key, body: payload })
        }),
      )
      return new Set(replies.map((it) => it.status)).size > 1
    },
  },
  {
    name: 'a public key learns whether a value is stored, from deduplication',
    succeeds: async (on) => {
      const value = 'guessed 4242'
      const stored = { type: 'token', data: value, fingerprint_expression: '{{ data }}' }
      const kept = idOf(await on.call('POST', '/tokens', { key: on.owner.key, body: stored }))
      const browser = await browserOf(on)
      const guess = { ...stored, deduplicate_token: true }
      const reply = await on.call('POST', '/tokens', { key: browser.key, body: guess })
      return reply.json()['id'] === kept
    },
  },
  {
    name: 'a tenant learns the name of another by renaming itself',
    succeeds: async (on) => {
      const { managementKey: key, otherTenant: name } = on
      const { status } = await on.call('PUT', '/tenants/self', { key, body: { name } })
      return status === 409
    },
  },
  {
    name: 'GET shows a session a token that no container grants to both it and its grantor',
    succeeds: async (on) => {
      const body = { type: 'token', data: SECRET, containers: ['/a/', '/b/'] }
      const id = idOf(await on.call('POST', '/tokens', { key: on.owner.key, body }))
      const grantor = await on.application({
        name: 'grantor',
        type: 'private',
        rules: [readingIn('/a/')],
      })
      const browser = await browserOf(on)
      const session = (await on.call('POST', '/sessions', { key: browser.key })).json()
      const rights = { nonce: session['nonce']!, rules: [readingIn('/a/')] }
      await on.call('POST', '/sessions/authorize', { key: grantor.key, body: rights })
      const narrowed = { name: 'grantor', rules: [readingIn('/b/')] }
      const path = `/applications/${grantor.id}`
      await on.call('PUT', path, { key: on.managementKey, body: narrowed })
      const reply = await on.call('GET', `/tokens/${id}`, { key: session['session_key'] as string })
      return reply.text.includes(SECRET)
    },
  },
  {
    name: 'reactor:read shows a secret in the configuration of a reactor',
    succeeds: async (on) => {
      const id = await reactorOf(on, 'module.exports = async () => ({ raw: {} })')
      const reader = await on.application({
        name: 'reader',
        type: 'management',
        permissions: ['reactor:read'],
      })
      const reply = await on.call('GET', `/reactors/${id}`, { key: reader.key })
      return reply.text.includes('sk-live-secret')
    },
  },
]

/** Attacks through what the service forwards or passes on. */
const FORWARDED: readonly RightsAttack[] = [
  ...['%c0%ae%c0%ae', '%e0%80%ae%e0%80%ae', '%ef%bc%8e%ef%bc%8e', '%e2%80%a4%e2%80%a4'].map(
    (dots): RightsAttack => ({
      name: `a path with ${dots} reaches the destination`,
      succeeds: async (on) => {
        const headers = { 'bt-proxy-url': on.destination.url }
        await on.call('GET', `/proxy/a/${dots}/b`, { key: on.owner.key, headers })
        return on.destination.received.some((it) => it.includes(dots))
      },
    }),
  ),
  ...['set-cookie2', 'www-authenticate', 'location'].map((header): RightsAttack => ({
    name: `a reactor sets ${header} in its response`,
    succeeds: async (on) => {
      const id = await reactorOf(
        on,
        `const { CustomHttpResponseError } = require('@basis-theory/basis-theory-reactor-formulas-sdk-js')
           module.exports = async () => {
             throw new CustomHttpResponseError({ status: 401, headers: { '${header}': 'https://evil.example/' }, body: {} })
           }`,
      )
      const invoker = await on.application({
        name: 'invoker',
        type: 'private',
        permissions: ['token:use'],
      })
      const path = `/reactors/${id}/react`
      const reply = await on.call('POST', path, { key: invoker.key, body: { args: {} } })
      if (reply.status !== 401)
        throw new Error(`The reactor answered ${reply.status}: ${reply.text}`)
      return reply.headers[header] !== undefined
    },
  })),
]

/** Misleading audit events. */
const RECORDED: readonly RightsAttack[] = [
  {
    name: 'fetching a result that is absent is recorded as an invocation of the reactor',
    succeeds: async (on) => {
      const id = await reactorOf(on, 'module.exports = async () => ({ raw: {} })')
      const path = `/reactors/${id}/results/01945d00-0000-4000-8000-0000000000ff`
      const invoker = await on.application({
        name: 'invoker',
        type: 'private',
        permissions: ['token:use'],
      })
      await on.call('GET', path, { key: invoker.key })
      const events = await on.events()
      return events.some((it) => it['actor_id'] === invoker.id && it['operation'] === 'invoke')
    },
  },
]

export const RIGHTS_ATTACKS: readonly RightsAttack[] = [
  ...LATE,
  ...ORACLES,
  ...FORWARDED,
  ...RECORDED,
]

/** An application that reads its own large tokens, which together nearly fill an answer, and nothing in `/other/`. */
async function ballastOf(on: Attacked): Promise<[MadeApplication, string[]]> {
  const reader = await on.application({
    name: 'reader',
    type: 'private',
    rules: [readingIn('/own/')],
  })
  const ids: string[] = []
  let room = ANSWER_BYTES - 100_000
  for (; room > 0; room -= TOKEN_BYTES) {
    ids.push(await on.token('b'.repeat(Math.min(room, TOKEN_BYTES)), '/own/'))
  }
  return [reader, ids]
}

const ANSWER_BYTES = 32 * 1024 * 1024
const TOKEN_BYTES = 4_000_000

async function browserOf(on: Attacked): Promise<MadeApplication> {
  return await on.application({ name: 'browser', type: 'public', permissions: ['token:create'] })
}

async function reactorOf(on: Attacked, code: string): Promise<string> {
  const writer = await on.application({
    name: 'writer',
    type: 'management',
    permissions: ['reactor:create'],
  })
  const body = { name: 'reactor', code, configuration: { key: { secret: 'sk-live-secret' } } }
  return idOf(await on.call('POST', '/reactors', { key: writer.key, body }))
}

function readingIn(container: string): JsonObject {
  return {
    description: container,
    priority: 1,
    container,
    transform: 'reveal',
    permissions: ['token:read'],
  }
}

async function readerOf(on: Attacked): Promise<MadeApplication> {
  const rule = {
    description: 'all',
    priority: 1,
    container: '/',
    transform: 'reveal',
    permissions: ['token:read'],
  }
  return await on.application({ name: 'reader', type: 'private', rules: [rule] })
}

async function narrow(
  on: Attacked,
  { id }: MadeApplication,
  permissions: readonly string[],
): Promise<void> {
  const body: JsonObject = { name: 'narrowed', permissions: [...permissions], rules: [] }
  const { status } = await on.call('PUT', `/applications/${id}`, { key: on.managementKey, body })
  if (status !== 200) throw new Error(`Cannot narrow a key: ${status}`)
}
