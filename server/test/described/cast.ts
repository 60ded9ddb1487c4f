/** The callers of a round, each with a key, and what the answers they got named: ids, cursors and nonces to be used again. */
import assert from 'node:assert/strict'
import type { Dice } from '../../crash/dice.ts'
import { hashApiKey } from '../../src/access/api-key.ts'
import { isJsonObject, type Json, type JsonObject } from '../../src/base/json.ts'
import type { Plan } from '../../src/base/access.ts'
import type { Reply, StillVault } from '../kit/still-vault.ts'
import { STILL_BUILD } from '../kit/still-builds.ts'
import type { PlacedOperation } from './document.ts'
import { pick, uuid } from './values.ts'

const TOKEN_RIGHTS = ['create', 'update', 'read', 'search', 'delete', 'use'].map(
  (it) => `token:${it}`,
)

/** How many things of a kind are remembered: the older ones may be gone. */
const KNOWN_MAX = 12

export class Cast {
  readonly #keys: Readonly<
    Record<'management' | 'private' | 'public' | 'session' | 'narrow', string>
  >
  readonly #others: readonly string[]
  /** The parameters of what was made, by the path it is under. */
  readonly #made = new Map<string, Record<string, string>[]>()
  /** Values of members, by their name. */
  readonly #values = new Map<string, string[]>()

  private constructor(
    keys: Cast['keys'],
    others: readonly string[],
    permissions: readonly string[],
  ) {
    this.#keys = keys
    this.#others = others
    this.#values.set('permissions', [...permissions])
  }

  get keys(): Readonly<Record<'management' | 'private' | 'public' | 'session' | 'narrow', string>> {
    return this.#keys
  }

  /** Sets up a tenant of its own; `others` are keys of other tenants. */
  static async open(
    vault: StillVault,
    name: string,
    plan: Plan,
    others: readonly string[],
  ): Promise<Cast> {
    const management = await vault.addTenant(name, plan)
    const send = async (path: string, key: string, body?: JsonObject): Promise<JsonObject> => {
      const reply = await vault.call('POST', path, { key, ...(body !== undefined && { body }) })
      assert.ok(reply.status < 300, reply.text)
      return reply.text === '' ? {} : reply.json()
    }
    const keyFor = async (application: JsonObject): Promise<string> =>
      (await send('/applications', management, { name: 'caller', ...application }))['key'] as string
    const [broad, narrow, publicKey] = [
      await keyFor({
        type: 'private',
        rules: [{ priority: 1, container: '/', transform: 'reveal', permissions: TOKEN_RIGHTS }],
      }),
      await keyFor({
        type: 'private',
        rules: [
          { priority: 1, container: '/pci/', transform: 'redact', permissions: TOKEN_RIGHTS },
          { priority: 2, container: '/general/', transform: 'mask', permissions: TOKEN_RIGHTS },
        ],
      }),
      await keyFor({
        type: 'public',
        permissions: ['token:create', 'token:update'],
        allowed_origins: ['https://shop.example'],
      }),
    ]
    const session = await send('/sessions', publicKey)
    await send('/sessions/authorize', broad, {
      nonce: session['nonce']!,
      permissions: ['token:create', 'token:read', 'token:use'],
    })
    const permissions = await vault.call('GET', '/permissions', { key: management })
    const names = (JSON.parse(permissions.text) as JsonObject[]).map((it) => it['type'] as string)
    const keys = {
      management,
      private: broad,
      public: publicKey,
      session: session['session_key'] as string,
      narrow,
    }
    return new Cast(keys, others, names)
  }

  /** Returns the key of a caller that the operation is for, by what its description says. */
  keyFor({ description, security }: PlacedOperation, dice: Dice): string | undefined {
    if (security !== undefined && dice() < 0.7) return undefined
    const drawn = dice()
    if (drawn < 0.06) return this.anyKey(dice)
    if (
      /`(?:token|proxy|reactor):(?:\w+:)?(?:invoke|use|create|read|search|update|delete)`/.test(
        description,
      )
    ) {
      const forTokens = /`token:|:invoke`/.test(description)
      if (!forTokens) return this.#keys.management
      return drawn < 0.75
        ? this.#keys.private
        : pick(dice, [this.#keys.narrow, this.#keys.session, this.#keys.public])
    }
    if (description.includes('public application')) return this.#keys.public
    if (description.includes('private application')) return this.#keys.private
    if (description.startsWith('Any valid key')) return pick(dice, Object.values(this.#keys))
    return this.#keys.management
  }

  anyKey(dice: Dice): string | undefined {
    return pick(dice, [
      undefined,
      'key_local_pvt_unknown',
      '',
      ...this.#others,
      ...Object.values(this.#keys),
      ...Object.values(this.#keys),
    ])
  }

  /** Returns parameters of something at `path` that was made earlier, mostly of something recent. */
  paramsFor(path: string, dice: Dice): Record<string, string> {
    if (path === '/docs/{page}') return { page: 'interface.md' }
    if (path === '/docs/operate/{page}') return { page: 'run.md' }
    if (path === '/fields/v1/{build}/{file}') return { build: STILL_BUILD, file: 'frame.css' }
    if (path === '/fields/v1/{build}/frame/{key_hash}')
      return { build: STILL_BUILD, key_hash: hashApiKey(this.#keys.public).toString('hex') }
    if (path === '/proxy/{below}')
      return { below: pick(dice, ['charges', 'a b', '..', '\\', '{{x}}']) }
    return { ...this.#latest(this.#made.get(listOf(path)) ?? [], dice) }
  }

  /** Returns a value for a member of a body or a query. */
  known(path: string, member: string, dice: Dice): string | undefined {
    if (member === 'application.id' || member === 'application_id')
      return this.#id('/applications', dice)
    if (member === 'token') return this.#id('/tokens', dice)
    if (member === 'id') {
      if (path.startsWith('/v2') || path.startsWith('/tokens')) {
        return path === '/tokens' && dice() < 0.8 ? undefined : this.#id('/tokens', dice)
      }
      return this.#id(path, dice)
    }
    const name = member.split('.').at(-1)!
    if (name === 'permissions') return pick(dice, this.#values.get('permissions')!)
    return this.#latest(this.#values.get(name) ?? [], dice)
  }

  /** Returns how often a header is sent, and with which values. */
  headerValues(name: string, dice: Dice): [share: number, values: string[]] {
    switch (name) {
      case 'BT-TRACE-ID':
        return [0.1, ['trace', 'a b']]
      case 'BT-IDEMPOTENCY-KEY':
        return [0.15, ['one', 'two', 'three', uuid(dice)]]
      case 'BT-TRANSACTION-ID':
        return [0.2, [this.#id('/transactions', dice) ?? uuid(dice)]]
      case 'BT-PROXY-URL':
        return [
          0.9,
          ['https://api.example.com/v1', 'https://gone.example', 'https://api.example.com/a?b=c'],
        ]
      case 'BT-PROXY-KEY':
        return [0.2, this.#values.get('proxy key') ?? [uuid(dice)]]
      case 'BT-PROXY-DRY-RUN':
        return [0.4, ['true', 'true', 'false']]
      case 'BT-PROXY-CONNECTION':
        return [0.05, ['close']]
      default:
        return [0.05, ['timeout=5, max=100']]
    }
  }

  /** Remembers what an answer at `path` names. */
  learn(path: string, target: string, { status, text }: Reply): void {
    if (status >= 300 || !/^[[{"]/.test(text)) return
    const answer = JSON.parse(text) as Json
    const outer = paramsIn(path, target)
    if (path === '/tokenize') {
      for (const id of idsIn(answer)) this.#remember('/tokens', { id })
      return
    }
    if (!isJsonObject(answer)) return
    const place = path.endsWith('/keys') ? path : listOf(path)
    const { id, data, nonce, key, pagination, asyncReactorRequestId: requestId } = answer
    if (typeof requestId === 'string') {
      this.#remember('/reactors/{id}/results', { id: outer['id']!, requestId })
    }
    if (typeof id === 'string') {
      const isKey = place.endsWith('/keys')
      this.#remember(place, isKey ? { id: outer['id']!, keyId: id } : { id })
    }
    if (place === '/callbacks' && Array.isArray(data)) {
      for (const it of data as JsonObject[]) this.#remember(place, { id: it['id'] as string })
    }
    if (place === '/proxies' && typeof key === 'string') this.#keep('proxy key', key)
    if (typeof nonce === 'string') this.#keep('nonce', nonce)
    if (isJsonObject(pagination) && typeof pagination['after'] === 'string') {
      this.#keep('start', pagination['after'])
    }
  }

  #id(place: string, dice: Dice): string | undefined {
    return this.#latest(this.#made.get(place) ?? [], dice)?.['id']
  }

  #latest<It>(items: readonly It[], dice: Dice): It | undefined {
    return items.length === 0 ? undefined : pick(dice, items)
  }

  #remember(place: string, params: Record<string, string>): void {
    remember(this.#made, place, params)
  }

  #keep(name: string, value: string): void {
    remember(this.#values, name, value)
  }
}

function remember<It>(known: Map<string, It[]>, name: string, it: It): void {
  known.set(name, [...(known.get(name) ?? []), it].slice(-KNOWN_MAX))
}

/** Returns the path of the list that `path` is in: up to its last parameter. */
function listOf(path: string): string {
  const at = path.lastIndexOf('/{')
  return at < 0 ? path : path.slice(0, at)
}

function paramsIn(path: string, target: string): Record<string, string> {
  const pattern = path.replaceAll(/\{(\w+)\}/g, '(?<$1>[^/?]+)')
  return { ...new RegExp(`^${pattern}`).exec(target)?.groups }
}

function idsIn(answer: Json): string[] {
  if (typeof answer === 'string') return [answer]
  if (Array.isArray(answer)) return answer.flatMap(idsIn)
  if (!isJsonObject(answer)) return []
  const { id, containers } = answer
  if (typeof id === 'string' && Array.isArray(containers)) return [id]
  return Object.values(answer).flatMap(idsIn)
}
