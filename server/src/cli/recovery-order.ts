/**
 * The orders by which `symbolon keys recover` has a running service make a key.
 *
 *     command                                              service
 *        | -- { challenge: 'recovery' } ----------------------> | makes a challenge, valid once and for a minute
 *        | <- { challenge } ----------------------------------- |
 *        | -- request, challenge, random bytes wrapped by ----> | unwraps them with the root key in use, with request
 *        |    each root key (the proofs)                        | and challenge as associated data: proof of possession
 *        | <- ids, API key encrypted under those bytes -------- |
 *
 * Another process of the service's user may listen on the socket in place of the service, and pass everything on. It cannot read the
 * API key, and the proof that it has seen is valid no second time. Decision 0073.
 */
import { createSecretKey } from 'node:crypto'
import {
  recoverManagementKey,
  type RecoveredKey,
  type RecoveryRequest,
} from '../access/applications/recover-management-key.ts'
import { decrypt, encrypt, NONCE_BYTES } from '../adapters/local-keyring/gcm.ts'
import type { RootKeys } from '../adapters/local-keyring/root-keys.ts'
import { RECOVERY_CHALLENGE_MS } from '../base/limits.ts'
import type { KeyProvider } from '../ports/key-provider.ts'
import type { World } from '../ports/world.ts'
import type { OpenWorld } from './open-world.ts'

/** The order that asks for a challenge. */
export const CHALLENGE_ORDER = { challenge: 'recovery' }

/** The order that asks for a key. */
export interface RecoveryOrder {
  readonly recover: RecoveryRequest
  readonly challenge: string
  /** Random bytes wrapped by each root key that the command holds, in hexadecimal: only a holder of the key can make them. */
  readonly proofs: readonly string[]
}

/** An order, and what its sender needs to read the answer. */
export interface ProvenOrder {
  readonly order: RecoveryOrder
  /** The bytes in each of the proofs. */
  readonly secrets: readonly Uint8Array[]
}

/** The service's answer. */
export interface SealedRecovery extends Pick<RecoveredKey, 'tenantId' | 'applicationId'> {
  /** Which of the proofs was accepted. */
  readonly proof: number
  /** The API key, encrypted under the bytes in that proof, in hexadecimal. */
  readonly sealed: string
}

/** Returns an order that proves possession of `keys`, for this request and challenge only. */
export async function proveRecovery(
  recover: RecoveryRequest,
  challenge: string,
  keys: RootKeys,
  random: World['random'],
): Promise<ProvenOrder> {
  const providers = keys.all()
  const secrets = providers.map(() => random.bytes(PROOF_BYTES))
  const context = contextOf(recover, challenge)
  const wrapped = await Promise.all(providers.map((it, n) => it.wrap(secrets[n]!, context)))
  const proofs = wrapped.map((it) => Buffer.from(it).toString('hex'))
  return { order: { recover, challenge, proofs }, secrets }
}

/** Returns the key in an answer. Throws if it was encrypted for another order. */
export function openRecovery(
  { order, secrets }: ProvenOrder,
  { tenantId, applicationId, proof, sealed }: SealedRecovery,
): RecoveredKey {
  const key = createSecretKey(secrets[proof]!)
  const apiKey = decrypt(key, 0, Buffer.from(order.challenge), Buffer.from(sealed, 'hex'))
  return { tenantId, applicationId, apiKey: apiKey.toString() }
}

export function isChallengeOrder(order: unknown): boolean {
  return (
    typeof order === 'object' &&
    order !== null &&
    'challenge' in order &&
    order.challenge === CHALLENGE_ORDER.challenge
  )
}

/** Parses an order from a line of JSON; returns null if it is invalid. */
export function parseRecoveryOrder(order: unknown): RecoveryOrder | null {
  if (typeof order !== 'object' || order === null) return null
  const { recover, challenge, proofs } = order as Partial<Record<keyof RecoveryOrder, unknown>>
  if (typeof recover !== 'object' || recover === null || !Array.isArray(proofs)) return null
  const { tenant, applicationId } = recover as Partial<Record<keyof RecoveryRequest, unknown>>
  if (!isTextOrNull(tenant) || !isTextOrNull(applicationId)) return null
  if (typeof challenge !== 'string' || !proofs.every((it) => typeof it === 'string')) return null
  return { recover: { tenant, applicationId }, challenge, proofs }
}

function isTextOrNull(value: unknown): value is string | null {
  return typeof value === 'string' || value === null
}

/** Executes orders in the service. */
export class Recoveries {
  readonly #opened: Pick<OpenWorld, 'world' | 'keyProvider'>
  /** The challenges that were not used yet, and when they end, by Clock.elapsed(). */
  readonly #challenges = new Map<string, number>()

  constructor(opened: Pick<OpenWorld, 'world' | 'keyProvider'>) {
    this.#opened = opened
  }

  /** Returns a challenge for one order. */
  challenge(): string {
    const { clock, random } = this.#opened.world
    for (const [it, end] of this.#challenges) {
      if (end <= clock.elapsed()) this.#challenges.delete(it)
    }
    const challenge = Buffer.from(random.bytes(PROOF_BYTES)).toString('hex')
    this.#challenges.set(challenge, clock.elapsed() + RECOVERY_CHALLENGE_MS)
    return challenge
  }

  /** Rejects unless the sender holds the root key in use, and as recoverManagementKey() does. */
  async execute({ recover, challenge, proofs }: RecoveryOrder): Promise<SealedRecovery> {
    const { world, keyProvider } = this.#opened
    const end = this.#challenges.get(challenge) ?? 0
    this.#challenges.delete(challenge)
    if (end <= world.clock.elapsed()) {
      throw new Error(
        'Cannot recover a key: the challenge is unknown, or too old; run the command again',
      )
    }
    const installed = await world.store.tenants.rootKeyCheck()
    // Another server may have replaced it.
    if (installed !== null) keyProvider.follow(installed.id)
    const inUse = keyProvider.find(keyProvider.id)!
    const context = contextOf(recover, challenge)
    const secrets = await Promise.all(proofs.map((it) => secretIn(inUse, it, context)))
    const proof = secrets.findIndex((it) => it !== null)
    if (proof < 0) {
      throw new Error(
        `Cannot recover a key: the command was run without root key ${inUse.id}, which is in use; ` +
          'set SYMBOLON_ROOT_KEY_FILE to its file, as for the service',
      )
    }
    const { tenantId, applicationId, apiKey } = await recoverManagementKey(
      world,
      keyProvider,
      recover,
    )
    const key = createSecretKey(secrets[proof]!)
    const nonce = world.random.bytes(NONCE_BYTES)
    const sealed = encrypt(key, new Uint8Array(), nonce, Buffer.from(challenge), apiKey)
    return { tenantId, applicationId, proof, sealed: sealed.toString('hex') }
  }
}

async function secretIn(
  key: KeyProvider,
  proof: string,
  context: readonly string[],
): Promise<Uint8Array | null> {
  try {
    const secret = await key.unwrap(Buffer.from(proof, 'hex'), context)
    return secret.length === PROOF_BYTES ? secret : null
  } catch {
    return null
  }
}

function contextOf({ tenant, applicationId }: RecoveryRequest, challenge: string): string[] {
  return ['management key recovery', JSON.stringify([tenant, applicationId]), challenge]
}

/** The length of a key: providers need not wrap any other length. */
const PROOF_BYTES = 32
