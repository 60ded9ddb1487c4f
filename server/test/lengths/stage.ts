/** A vault with a token that callers name and whose data they may not see, and ballast: tokens that they may read. */
import assert from 'node:assert/strict'
import { LARGE_BYTES_MIN, MiB, SHOWN_DATA_BYTES_MAX } from '../../src/base/limits.ts'
import { stillVault, type StillVault, type StillVaultOptions } from '../kit/still-vault.ts'

export interface LengthsStage {
  readonly vault: StillVault
  readonly reactorId: string
  /** The keys of callers: none may see the data of the token. */
  readonly keys: {
    /** May do everything with the ballast, and nothing with the token. */
    readonly denied: string
    /** May also use and find the token, with its data redacted. */
    readonly redacted: string
    /** May create tokens where the token is, with a public key. */
    readonly public: string
  }
  /** Ids of ballast that leaves room for the data of a token of one byte, below each limit. */
  readonly ballast: Readonly<Record<BallastName, readonly string[]>>
  /** Creates the token with data of `length` bytes and returns its id. */
  readonly create: (length: number) => Promise<string>
  readonly remove: (id: string) => Promise<void>
  readonly close: () => Promise<void>
}

export type BallastName = 'no ballast' | 'ballast for a slot' | 'ballast for the limit'

export const THEIRS = '/theirs/'
export const MINE = '/mine/'
/** The fingerprint expression of the token. */
export const ITS_FINGERPRINT = "{{ 'the token' }}"

const ALL = [
  'token:create',
  'token:read',
  'token:search',
  'token:update',
  'token:delete',
  'token:use',
]

export async function lengthsStage(options: StillVaultOptions = {}): Promise<LengthsStage> {
  const vault = await stillVault(options)
  vault.world.egress.reply = ({ body }) => ({ status: 200, reason: 'OK', chunks: [body] })
  const mine = rule(1, MINE, 'reveal', ALL)
  const owner = await vault.keyFor({ rules: [rule(1, '/', 'reveal', ALL)] })
  const keys = {
    denied: await vault.keyFor({
      rules: [mine, rule(2, THEIRS, 'reveal', ['token:create'])],
    }),
    redacted: await vault.keyFor({
      rules: [
        mine,
        rule(2, THEIRS, 'redact', ['token:read', 'token:search', 'token:use']),
        rule(3, THEIRS, 'reveal', ['token:create']),
      ],
    }),
    public: await vault.keyFor({
      type: 'public',
      rules: [rule(1, '/', 'reveal', ['token:create'])],
    }),
  }
  const reactor = await vault.call('POST', '/reactors', {
    key: vault.managementKey,
    body: {
      name: 'x',
      code: 'module.exports = async (req) => ({ raw: req.args })',
      configuration: {},
    },
  })
  assert.equal(reactor.status, 201, reactor.text)

  const probe = await make(1, { containers: [MINE] })
  const [{ data } = assert.fail()] = await vault.world.store.tokens.find(vault.tenantId, [probe])
  const overhead = data.length - 1
  const ballast = {
    'no ballast': [],
    'ballast for a slot': await ballastOf('slot', [LARGE_BYTES_MIN - data.length]),
    'ballast for the limit': await ballastOf('limit', [
      ...Array<number>(7).fill(4 * MiB),
      SHOWN_DATA_BYTES_MAX - 7 * 4 * MiB - data.length,
    ]),
  }
  // So that lists show the token first.
  vault.world.clock.pass(1000)
  return {
    vault,
    reactorId: reactor.json()['id'] as string,
    keys,
    ballast,
    create: (length) =>
      make(length, {
        containers: [THEIRS],
        fingerprint_expression: ITS_FINGERPRINT,
        deduplicate_token: true,
        mask: null,
      }),
    remove: async (id) => {
      const reply = await vault.call('DELETE', `/tokens/${id}`, { key: owner })
      assert.equal(reply.status, 204, reply.text)
    },
    close: () => vault.close(),
  }

  /** Makes tokens whose encrypted data has these lengths. */
  async function ballastOf(name: string, sizes: readonly number[]): Promise<string[]> {
    const ids: string[] = []
    for (const [at, size] of sizes.entries()) {
      const id = `ballast-${name}-${at}`
      await make(size - overhead, {
        id,
        containers: [MINE],
        fingerprint_expression: `{{ '${id}' }}`,
        deduplicate_token: true,
      })
      ids.push(id)
    }
    return ids
  }

  async function make(length: number, more: object): Promise<string> {
    const body = { type: 'token', data: 'x'.repeat(length), ...more }
    const reply = await vault.call('POST', '/tokens', { key: owner, body })
    assert.equal(reply.status, 201, reply.text.slice(0, 300))
    return reply.json()['id'] as string
  }
}

function rule(
  priority: number,
  container: string,
  transform: string,
  permissions: readonly string[],
): { priority: number; container: string; transform: string; permissions: string[] } {
  return { priority, container, transform, permissions: [...permissions] }
}
