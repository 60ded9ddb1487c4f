import { accessStateStatement, type AccessState, type SealedAccess } from '../ports/access-state.ts'
import type { TenantKeys } from '../ports/keyring.ts'

/**
 * The sum, modulo 2^256, of a keyed MAC of each application and key of a tenant, in any order.
 *
 * Its digest adds a MAC that is different for each revision, so that digests stored one after the other do not reveal the MAC of a
 * row: with many of those, rows could be found that add up to the same sum. Decision 0082.
 */
export class AccessSum {
  readonly #keys: Pick<TenantKeys, 'attest'>
  readonly #tenantId: string
  #sum = 0n

  constructor(keys: Pick<TenantKeys, 'attest'>, tenantId: string) {
    this.#keys = keys
    this.#tenantId = tenantId
  }

  /** Returns the sum in a state, which must be genuine. */
  static of(
    keys: Pick<TenantKeys, 'attest'>,
    tenantId: string,
    { revision, digest }: SealedAccess,
  ): AccessSum {
    const sum = new AccessSum(keys, tenantId)
    sum.#sum = modulo(BigInt(`0x${Buffer.from(digest).toString('hex')}`) - sum.#mask(revision))
    return sum
  }

  /** `statement` is that of a row. */
  add(statement: readonly string[]): void {
    this.#sum = modulo(this.#sum + this.#mac(statement))
  }

  remove(statement: readonly string[]): void {
    this.#sum = modulo(this.#sum - this.#mac(statement))
  }

  equals(other: AccessSum): boolean {
    return this.#sum === other.#sum
  }

  /** Whether `more` is the sum with exactly the rows of `statements` added. */
  isWithout(more: AccessSum, statements: readonly (readonly string[])[]): boolean {
    const added = statements.reduce((sum, it) => sum + this.#mac(it), this.#sum)
    return modulo(added) === more.#sum
  }

  /** Returns the state of this revision. */
  state(revision: number): AccessState {
    const digest = bytesOf(modulo(this.#sum + this.#mask(revision)))
    const proof = this.#keys.attest(accessStateStatement(this.#tenantId, { revision, digest }))
    return { revision, digest, proof }
  }

  #mask(revision: number): bigint {
    return this.#mac(['access mask', this.#tenantId, String(revision)])
  }

  #mac(statement: readonly string[]): bigint {
    const mac = this.#keys.attest(statement)
    return BigInt(`0x${Buffer.from(mac).toString('hex')}`)
  }
}

function modulo(sum: bigint): bigint {
  return BigInt.asUintN(256, sum)
}

function bytesOf(sum: bigint): Uint8Array {
  return Uint8Array.from(Buffer.from(sum.toString(16).padStart(64, '0'), 'hex'))
}
