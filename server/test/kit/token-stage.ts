/**
 * A still vault with an application that makes tokens and one that reads them in the clear: what most
 * tests of the interface begin with.
 */
import assert from 'node:assert/strict'
import type { Json, JsonObject } from '../../src/base/json.ts'
import type { StoredToken } from '../../src/ports/stored.ts'
import { stillVault, type Reply, type StillVault, type StillVaultOptions } from './still-vault.ts'

export interface TokenStage {
  readonly vault: StillVault
  /** Of a private application that may create and read tokens; reading shows it masks. */
  readonly key: string
  readonly applicationId: string
  /** Of a private application to which every token is revealed. */
  readonly revealKey: string
  /** Tokenizes, expects success and returns the answer. */
  readonly tokenize: (payload: Json, key?: string) => Promise<Json>
  /** Posts to /tokenize without expecting anything. */
  readonly tryTokenize: (payload: Json, key?: string) => Promise<Reply>
  /** Returns the plaintext of a token. */
  readonly reveal: (id: Json | undefined) => Promise<Json>
  /** Every token that was handed to the store so far. */
  readonly stored: () => StoredToken[]
}

/** `application` replaces what the first application may do. */
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

/** The rule that shows everything to whoever may read. */
export const REVEAL_ALL = {
  priority: 1,
  container: '/',
  transform: 'reveal',
  permissions: ['token:read'],
} as const satisfies JsonObject

/**
 * Returns `value` with each id replaced by its name in `names`, or by `<uuid>` if it has none.
 *
 * What is not a version 4 uuid in lower case stays, so comparing the result checks the form as well.
 */
export function named(value: Json, names: Readonly<Record<string, string>>): Json {
  if (typeof value === 'string') return UUID_V4.test(value) ? (names[value] ?? '<uuid>') : value
  if (Array.isArray(value)) return value.map((it) => named(it, names))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, it]) => [name, named(it, names)]))
}

/** As named(), for the ids that every answer of a stage holds. */
export function shapeOf(stage: TokenStage, value: Json): Json {
  return named(value, {
    [stage.vault.tenantId]: '<tenant>',
    [stage.applicationId]: '<application>',
  })
}

export const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

/** When a still vault's clock stands still, as answers write it. */
export const STILL_INSTANT = '2026-03-01T12:00:00.000+00:00'

/** The error members that every refused request shows: the paths at fault. */
export function pathsOf(reply: Reply): string[] {
  return Object.keys(reply.json()['errors'] as JsonObject)
}
