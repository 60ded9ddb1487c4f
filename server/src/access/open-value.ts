import type { Sensitive } from '../base/sensitive.ts'
import { ServiceError } from '../base/service-error.ts'
import { UnreadableValue, type ValueName } from '../base/unreadable-value.ts'
import { UnreadableEnvelope, type SealContext, type TenantKeys } from '../ports/keyring.ts'

/**
 * Opens the envelope of `value`, which the log names if that fails.
 *
 * Throws `value_unreadable`.
 */
export function openValue(
  keys: TenantKeys,
  context: SealContext,
  envelope: Uint8Array,
  value: ValueName,
): Sensitive<string> {
  try {
    return keys.open(context, envelope)
  } catch (cause) {
    if (!(cause instanceof UnreadableEnvelope)) throw cause
    const unreadable = new UnreadableValue(value, { cause })
    throw new ServiceError('value_unreadable', undefined, { cause: unreadable })
  }
}

/** Returns the damaged value that `error` reports; null for any other error. */
export function unreadableIn(error: unknown): UnreadableValue | null {
  const cause = error instanceof ServiceError ? error.cause : null
  return cause instanceof UnreadableValue ? cause : null
}
