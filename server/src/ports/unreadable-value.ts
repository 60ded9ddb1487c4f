import type { EntityValueKind } from './store/entities.ts'

/** The kinds of encrypted values, as `symbolon verify` and the log name them. */
export type ValueKind =
  | 'token_data'
  | 'security_code'
  | 'pending_token_data'
  | 'pending_security_code'
  | EntityValueKind
  | 'tenant_key'
  | 'root_key_check'

/** The name of an encrypted value, which reveals nothing of it. */
export interface ValueName {
  readonly kind: ValueKind
  /** The internal id of its row, never an id that a caller chose. */
  readonly id: string
}

/** An encrypted value that cannot be decrypted: it or its key is damaged. */
export class UnreadableValue extends Error {
  override readonly name = 'UnreadableValue'
  readonly value: ValueName

  constructor(value: ValueName, options?: ErrorOptions) {
    super(`Cannot decrypt ${value.kind} ${value.id}`, options)
    this.value = value
  }
}
