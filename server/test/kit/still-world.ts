import { hash } from 'node:crypto'
import { DEFAULT_TENANT_SETTINGS, type Principal } from '../../src/base/access.ts'
import type { RequestContext } from '../../src/request/context.ts'
import { Sensitive } from '../../src/base/sensitive.ts'
import { canonical } from '../../src/adapters/canonical-json/canonical.ts'
import { MemoryStore } from './memory-store/memory-store.ts'
import { testSigningKeys } from './signing-key.ts'
import { stillEgress, type StillEgress } from './still-egress.ts'
import { stillRunner, type StillRunner } from './still-runner.ts'
import type { CanonicalJson } from '../../src/ports/canonical-json.ts'
import type { Clock } from '../../src/ports/clock.ts'
import type { KeyProvider } from '../../src/ports/key-provider.ts'
import type { Keyring, SealContext, TenantKeys } from '../../src/ports/keyring.ts'
import type { Log } from '../../src/ports/log.ts'
import type { WorldRandom } from '../../src/ports/random.ts'
import type { Change } from '../../src/ports/change.ts'
import type { Store } from '../../src/ports/store.ts'
import { withCommit } from '../../src/ports/with-commit.ts'

/**
 * A deterministic world: time stands still until a test advances it, randomness repeats with every run, and all output to
 * the store, the log or other services is recorded.
 */
export interface StillWorld {
  readonly clock: Clock & {
    pass(ms: number): void
    /** Advances time for durations only: the time of day stands still. */
    elapse(ms: number): void
  }
  readonly random: WorldRandom
  readonly log: Log
  readonly keyring: Keyring
  readonly store: Store
  readonly egress: StillEgress
  readonly runner: StillRunner
  readonly canonicalJson: CanonicalJson
  /** All changes committed to the store, in order. */
  readonly committed: Change[]
  readonly logged: unknown[]
}

export const STILL_NOW = Date.parse('2026-03-01T12:00:00Z')

export function stillWorld(store: Store = new MemoryStore()): StillWorld {
  const committed: Change[] = []
  const logged: unknown[] = []
  return {
    clock: stillClock(),
    random: repeatingRandom(),
    log: rememberingLog(logged),
    keyring: thinKeyring,
    store: watched(store, (changes) => committed.push(...changes)),
    egress: stillEgress(),
    runner: stillRunner(),
    canonicalJson: { render: async (_, text) => canonical(text), close: async () => undefined },
    committed,
    logged,
  }
}

/** Returns the world of another server: with its own connection to the store, and everything else shared. */
export function otherStillWorld(world: StillWorld, store: Store): StillWorld {
  return { ...world, store: watched(store, (changes) => world.committed.push(...changes)) }
}

/** Returns the context of a principal with these permissions on every container, in a tenant that was never set up. */
export function contextWith(
  principal: Partial<Principal & Pick<RequestContext, 'idempotency'>> = {},
): RequestContext {
  return {
    tenantId: '01945d00-0000-4000-8000-00000000000a',
    plan: 'enterprise',
    settings: DEFAULT_TENANT_SETTINGS,
    applicationId: '01945d00-0000-4000-8000-00000000000b',
    keyId: '01945d00-0000-4000-8000-00000000000c',
    keys: [],
    type: 'private',
    permissions: [],
    rules: [],
    within: null,
    destinations: null,
    allowedOrigins: null,
    traceId: 'trace',
    decisions: [],
    recorded: 0,
    idempotency: null,
    ...principal,
  }
}

/** Wraps keys by flipping bits: enough to show that no unwrapped key is exposed. */
export function thinKeyProvider(id = 'root-a'): KeyProvider {
  const label = (context: readonly string[]): string => JSON.stringify([id, ...context])
  return {
    id,
    wrap: async (key, context) => thinSeal(label(context), key),
    unwrap: async (wrapped, context) => thinOpen(label(context), wrapped),
  }
}

/** A store that calls `look` before each commit; if `look` throws, nothing is committed. */
export function watched(store: Store, look: (changes: readonly Change[]) => void): Store {
  return withCommit(store, async (tenantId, changes) => {
    look(changes)
    return await store.commit(tenantId, changes)
  })
}

function stillClock(): StillWorld['clock'] {
  let passedMs = 0
  let elapsedMs = 0
  let waiting: { at: number; resolve: () => void }[] = []
  return {
    now: () => STILL_NOW + Math.floor(passedMs),
    elapsed: () => passedMs + elapsedMs,
    yield: async () => undefined,
    after(ms) {
      const { promise, resolve } = Promise.withResolvers<void>()
      waiting.push({ at: passedMs + elapsedMs + ms, resolve })
      return promise
    },
    pass(ms) {
      passedMs += ms
      wake()
    },
    elapse(ms) {
      elapsedMs += ms
      wake()
    },
  }

  function wake(): void {
    const due = waiting.filter((it) => it.at <= passedMs + elapsedMs)
    waiting = waiting.filter((it) => !due.includes(it))
    for (const it of due) it.resolve()
  }
}

function repeatingRandom(): WorldRandom {
  let portion = 0
  return {
    bytes(length) {
      const blocks: Buffer[] = []
      for (let at = 0; at < length; at += 32) {
        blocks.push(hash('sha256', `portion ${portion++}`, 'buffer'))
      }
      return Buffer.concat(blocks).subarray(0, length)
    },
    signingKey: testSigningKeys(),
  }
}

function rememberingLog(logged: unknown[]): Log {
  return {
    info: (event, fields) => void logged.push([event, fields]),
    warn: (event, fields, error) =>
      void logged.push(error === undefined ? [event, fields] : [event, error, fields]),
    error: (event, error, fields) => void logged.push([event, error, fields]),
  }
}

const thinKeyring: Keyring = {
  create: async (tenantId, now) => ({
    wrapped: (['enc', 'fp', 'idx'] as const).map((purpose) => ({
      purpose,
      version: 1,
      wrapped: Buffer.from(`wrapped ${purpose} of ${tenantId}`),
      createdAt: now,
    })),
    keys: thinKeys(tenantId),
  }),
  open: (tenantId) => thinKeys(tenantId),
  forget: () => {},
}

function thinKeys(tenantId: string): TenantKeys {
  const label = ({ id, part, type, containers }: SealContext): string =>
    JSON.stringify([tenantId, id, part, type, containers])
  return {
    seal: (context, plaintext) => thinSeal(label(context), Buffer.from(plaintext.reveal())),
    open: (context, envelope) => new Sensitive(thinOpen(label(context), envelope).toString()),
    fingerprint: (scope, value) => hash('sha256', `${tenantId} ${scope} ${value.reveal()}`, 'hex'),
    index: (value) => hash('sha256', `${tenantId} ${value.reveal()}`, 'buffer'),
    attest: (statement) => thinProof(tenantId, statement),
    attests: (statement, proof) => thinProof(tenantId, statement).equals(proof),
  }
}

function thinProof(tenantId: string, statement: readonly string[]): Buffer {
  return hash('sha256', JSON.stringify(['attest', tenantId, ...statement]), 'buffer')
}

function thinSeal(label: string, plaintext: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(`${label}\n`), plaintext.map((byte) => byte ^ 0xff)])
}

function thinOpen(label: string, envelope: Uint8Array): Buffer {
  const prefix = Buffer.from(`${label}\n`)
  if (Buffer.compare(envelope.subarray(0, prefix.length), prefix) !== 0) {
    throw new Error('Cannot open the envelope: it belongs somewhere else')
  }
  return Buffer.from(envelope.subarray(prefix.length).map((byte) => byte ^ 0xff))
}
