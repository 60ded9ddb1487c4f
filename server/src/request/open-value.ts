import { UNREADABLE_LOGGED_MAX } from '../base/limits.ts'
import type { Sensitive } from '../base/sensitive.ts'
import { ServiceError } from '../base/service-error.ts'
import { UnreadableValue, type ValueName } from '../ports/unreadable-value.ts'
import { UnreadableEnvelope, type SealContext, type TenantKeys } from '../ports/keyring.ts'
import type { World } from '../ports/world.ts'

/** Opens the envelope of `value`. Throws `value_unreadable` if it is damaged; the log then names `value`. */
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

/** The damaged values of one answer, logged in one line: a list may have hundreds. */
export class UnreadableValues {
  readonly #found: UnreadableValue[] = []

  /** Adds the damaged value that `error` reports; throws any other error. */
  add(error: unknown): void {
    const unreadable = unreadableIn(error)
    if (unreadable === null) throw error
    this.#found.push(unreadable)
  }

  /** Logs the number of damaged values, if there are any, and the names of the first UNREADABLE_LOGGED_MAX. */
  log({ log }: Pick<World, 'log'>, tenantId: string): void {
    const [first] = this.#found
    if (first === undefined) return
    const values = this.#found.slice(0, UNREADABLE_LOGGED_MAX).map((it) => ({ ...it.value }))
    log.error('value_unreadable', first, { tenant: tenantId, count: this.#found.length, values })
  }
}

/** Returns the damaged value that `error` reports; null for any other error. */
export function unreadableIn(error: unknown): UnreadableValue | null {
  const cause = error instanceof ServiceError ? error.cause : null
  return cause instanceof UnreadableValue ? cause : null
}
