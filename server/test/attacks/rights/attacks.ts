/**
 * Attacks on the moment at which rights are decided, and on what an answer gives away. Each returns whether it got what it must not
 * get. They use only what the service offers over HTTP, so that they run against any version of it.
 */
import type { JsonObject } from '../../../src/base/json.ts'
import type { Attacked, MadeApplication } from './stage.ts'

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

export const RIGHTS_ATTACKS: readonly RightsAttack[] = [...LATE]

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
