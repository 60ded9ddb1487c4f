/**
 * A still vault with one application that creates tokens and one that reads them in plaintext: the usual start of tests
 * of the interface.
 */
import assert from 'node:assert/strict'
import type { Json, JsonObject } from '../../src/base/json.ts'
import type { StoredToken } from '../../src/ports/stored.ts'
import { stillVault, type Reply, type StillVault, type StillVaultOptions } from './still-vault.ts'

export interface TokenStage {
  readonly vault: StillVault
  /** The key of a private application that may create tokens and read them masked. */
  readonly key: string
  readonly applicationId: string
  /** The key of a private application to which every token is revealed. */
  readonly revealKey: string
  /** Tokenizes, expects success and returns the answer. */
  readonly tokenize: (payload: Json, key?: string) => Promise<Json>
  /** Posts to /tokenize and returns the reply, whatever it is. */
  readonly tryTokenize: (payload: Json, key?: string) => Promise<Reply>
  /** Returns the plaintext of a token. */
  readonly reveal: (id: Json | undefined) => Promise<Json>
  /** Returns every token handed to the store so far. */
  readonly stored: () => StoredToken[]
}

/** `application` overrides members of the first application. */
export async function tokenStage(
  options: StillVaultOptions = {},
  application: JsonObject = { permissions: ['token:create', 'token:read'] },
): Promise<TokenStage> {
  const vault = await stillVault(options)
  const key = await vault.keyFor(application)
  const revealKey = await vault.keyFor({ rules: [REVEAL_ALL] })
  const own = await vault.call('GET', '/applications/key', { key })
  return {
    vault,
    key,
    revealKey,
    applicationId: own.json()['id'] as string,
    tokenize: async (payload, by = key) => {
      const reply = await vault.call('POST', '/tokenize', { key: by, body: payload })
      assert.equal(reply.status, 200, reply.text)
      return JSON.parse(reply.text) as Json
    },
    tryTokenize: (payload, by = key) => vault.call('POST', '/tokenize', { key: by, body: payload }),
    reveal: async (id) => {
      const path = `/tokens/${encodeURIComponent(id as string)}`
      const reply = await vault.call('GET', path, { key: revealKey })
      assert.equal(reply.status, 200, reply.text)
      return reply.json()['data']!
    },
    stored: () =>
      vault.world.committed.flatMap((it) => (it.kind === 'insert-tokens' ? it.tokens : [])),
  }
}

/** The rule that reveals everything to a caller who may read. */
export const REVEAL_ALL = {
  priority: 1,
  container: '/',
  transform: 'reveal',
  permissions: ['token:read'],
} as const satisfies JsonObject

/**
 * Returns `value` with each id replaced by its name in `names`, or by `<uuid>` if it has none.
 *
 * Anything but a version 4 UUID in lower case is kept, so comparing the result checks the format as well.
 */
export function named(value: Json, names: Readonly<Record<string, string>>): Json {
  if (typeof value === 'string') return UUID_V4.test(value) ? (names[value] ?? '<uuid>') : value
  if (Array.isArray(value)) return value.map((it) => named(it, names))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, it]) => [name, named(it, names)]))
}

/** Like named(), for the ids in every answer of a stage. */
export function shapeOf(stage: TokenStage, value: Json): Json {
  return named(value, {
    [stage.vault.tenantId]: '<tenant>',
    [stage.applicationId]: '<application>',
  })
}

export const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

/** The time at which a still vault's clock stands, as answers write it. */
export const STILL_INSTANT = '2026-03-01T12:00:00.000+00:00'

/** Returns the paths of the invalid members in a refusal. */
export function pathsOf(reply: Reply): string[] {
  return Object.keys(reply.json()['errors'] as JsonObject)
}
