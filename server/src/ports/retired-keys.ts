/** Finds the ciphertexts in a commit and rejects those encrypted under a retired key. */
import type { Change } from './change.ts'
import { ciphertextsOf } from './store/entity-columns.ts'
import type { StoredToken } from './stored.ts'

type CiphertextsIn<DefinitionKind extends Change['kind']> = (
  change: Extract<Change, { readonly kind: DefinitionKind }>,
) => readonly Uint8Array[]

/** Complete, so that a new kind of change has to say which ciphertexts it holds. */
const CIPHERTEXTS_IN: {
  readonly [DefinitionKind in Change['kind']]: CiphertextsIn<DefinitionKind> | null
} = {
  'insert-tokens': ({ tokens }) => tokens.flatMap(ofToken),
  'update-token': ({ token }) => ofToken(token),
  'remember-answer': ({ answer }) => ciphertextsOf('answer', answer),
  insert: ({ entity, row }) => ciphertextsOf(entity, row),
  update: ({ entity, row }) => ciphertextsOf(entity, row),
  'renew-envelopes': ({ envelopes }) => envelopes.map((it) => it.renewed),

  install: null,
  'insert-tenant': null,
  'delete-tenant': null,
  'clear-tenant': null,
  'require-root-key': null,
  'retire-data-keys': null,
  'destroy-tenant-keys': null,
  'replace-root-key': null,
  'put-notice': null,
  'put-access-state': null,
  'leave-access-state': null,
  'prove-session': null,
  'authorize-session': null,
  delete: null,
  'delete-token': null,
  'open-transaction': null,
  enlist: null,
  'end-transaction': null,
  'append-audit-events': null,
  'park-audit-events': null,
  'end-parked-audit-events': null,
  'trim-audit-log': null,
  'put-audit-checkpoint': null,
  'claim-job': null,
}

/** Returns an error if a change holds a ciphertext under a key older than `dataKeyId`; null otherwise. */
export function retiredKeyError(changes: readonly Change[], dataKeyId: Uint8Array): Error | null {
  const stale = changes.flatMap(ciphertextsIn).some((it) => isUnderOlderKey(it, dataKeyId))
  if (!stale) return null
  return new Error('Cannot commit, and nothing was changed: it is sealed under a replaced key')
}

/** Retired keys, in memory, for a store with a single writing process: all work under older keys ends with the process. */
export class RetiredKeys {
  readonly #oldestKeyIds = new Map<string, Uint8Array>()

  /** Returns the reason to refuse the tenant's changes, or null; records keys that the changes retire. */
  refusal(tenantId: string, changes: readonly Change[]): Error | null {
    for (const it of changes) if (it.kind === 'retire-data-keys') this.#refuse(tenantId, it.before)
    // The case in nearly all processes: a key is rotated once a year.
    if (this.#oldestKeyIds.size === 0) return null
    const dataKeyId = this.#oldestKeyIds.get(tenantId)
    return dataKeyId === undefined ? null : retiredKeyError(changes, dataKeyId)
  }

  #refuse(tenantId: string, before: Uint8Array): void {
    const known = this.#oldestKeyIds.get(tenantId)
    if (known === undefined || isUnderOlderKey(known, before))
      this.#oldestKeyIds.set(tenantId, before)
  }
}

/**
 * Whether the key id at the start of the envelope, RenewingKeys.dataKeyId, is less than `dataKeyId`: it is under an older key.
 */
export function isUnderOlderKey(envelope: Uint8Array, dataKeyId: Uint8Array): boolean {
  return Buffer.compare(envelope.subarray(0, dataKeyId.length), dataKeyId) < 0
}

function ciphertextsIn(change: Change): readonly Uint8Array[] {
  const of = CIPHERTEXTS_IN[change.kind] as CiphertextsIn<Change['kind']> | null
  return of === null ? [] : of(change)
}

function ofToken({ data, cvc }: StoredToken): Uint8Array[] {
  return cvc === null ? [data] : [data, cvc.envelope]
}
