/**
 * Separates the secrets of a configuration, which are write-only, from the values that answers show.
 *
 * Kept apart from each other everywhere, and in the sealed form too: code that does not know of secrets shows none.
 * Decision 0077.
 */
import { isJsonObject, type Json, type JsonObject } from '../base/json.ts'
import { mergePatch } from '../base/merge-patch.ts'
import { containsPlaceholder, SECRET_PLACEHOLDER, secretIn } from '../base/secret-value.ts'
import { Sensitive } from '../base/sensitive.ts'
import { ServiceError } from '../base/service-error.ts'

/** A configuration as it is stored. No name is in both. */
export interface SeparatedConfiguration {
  /** The values that answers show. */
  readonly configuration: Readonly<JsonObject>
  readonly secrets: ReadonlyMap<string, Sensitive<string>>
}

/**
 * Separates a configuration that was sent. The placeholder stands for the secret that `before`, the stored configuration of the
 * same proxy or reactor, has under this name. Values named in `untouched` stay as stored: a patch did not name them.
 *
 * Throws `body_invalid` for a placeholder anywhere else.
 */
export function separateSecrets(
  sent: Readonly<JsonObject>,
  before: SeparatedConfiguration | null,
  untouched: ReadonlySet<string> = new Set(),
): SeparatedConfiguration {
  // A map, since a value may be called __proto__.
  const shown = new Map<string, Json>()
  const secrets = new Map<string, Sensitive<string>>()
  for (const [name, value] of Object.entries(sent)) {
    const stored = before?.secrets.get(name)
    const secret = secretIn(value)
    if (stored !== undefined && value === SECRET_PLACEHOLDER) secrets.set(name, stored)
    else if (untouched.has(name)) shown.set(name, value)
    else if (value === SECRET_PLACEHOLDER) throw misplaced(name, NO_SECRET)
    else if (containsPlaceholder([name, value])) throw misplaced(name, PART_OF_VALUE)
    else if (secret !== null) secrets.set(name, new Sensitive(secret))
    else shown.set(name, value)
  }
  return { configuration: Object.fromEntries(shown), secrets }
}

const NO_SECRET =
  'This placeholder keeps a stored secret, but no secret is stored under this name: send the secret itself, as {"secret": "..."}.'
const PART_OF_VALUE =
  'Must not contain the placeholder of secrets. Send the placeholder alone to keep a secret, or {"secret": "..."} to set it.'

function misplaced(name: string, message: string): ServiceError {
  return new ServiceError('body_invalid', { [`configuration.${name}`]: [message] })
}

/** Returns the configuration for an answer: with the placeholder for each secret. */
export function renderConfiguration({
  configuration,
  secrets,
}: SeparatedConfiguration): JsonObject {
  const hidden = [...secrets.keys()].map((name) => [name, SECRET_PLACEHOLDER] as const)
  return Object.fromEntries([...Object.entries(configuration), ...hidden])
}

/** Returns the configuration for code: with each secret as a string. */
export function revealConfiguration({
  configuration,
  secrets,
}: SeparatedConfiguration): Sensitive<JsonObject> {
  const revealed = Object.entries(revealSecrets(secrets))
  return new Sensitive(Object.fromEntries([...Object.entries(configuration), ...revealed]))
}

/** Returns the configuration with `patch` applied, to be parsed, and the names that the patch does not touch. */
export function patchConfiguration(
  before: SeparatedConfiguration,
  patch: Json | undefined,
): { readonly patched: Json; readonly untouched: ReadonlySet<string> } {
  const current = renderConfiguration(before)
  if (patch === undefined) return { patched: current, untouched: new Set(Object.keys(current)) }
  if (!isJsonObject(patch)) return { patched: patch, untouched: new Set() }
  const entries = Object.entries(current).filter(([name]) => {
    // Merged into a stored object, a secret would become a member that answers show.
    return !Object.hasOwn(patch, name) || secretIn(patch[name]!) === null
  })
  return {
    patched: mergePatch(Object.fromEntries(entries), patch),
    untouched: new Set(Object.keys(current).filter((name) => !Object.hasOwn(patch, name))),
  }
}

/** Returns the configuration with the string stored under `name` marked as secret, or the reason why it cannot be. */
export function markSecret(
  { configuration, secrets }: SeparatedConfiguration,
  name: string,
): SeparatedConfiguration | 'secret already' | 'absent' | 'not a string' {
  if (secrets.has(name)) return 'secret already'
  if (!Object.hasOwn(configuration, name)) return 'absent'
  const value = configuration[name]!
  if (typeof value !== 'string') return 'not a string'
  const rest = Object.entries(configuration).filter(([it]) => it !== name)
  return {
    configuration: Object.fromEntries(rest),
    secrets: new Map(secrets).set(name, new Sensitive(value)),
  }
}

/** Returns the member of the sealed form; none without secrets, as before there were any. */
export function sealedSecrets(secrets: SeparatedConfiguration['secrets']): {
  readonly secrets?: Record<string, string>
} {
  return secrets.size === 0 ? {} : { secrets: revealSecrets(secrets) }
}

/** Returns the secrets in the member of the sealed form. */
export function openSecrets(
  sealed: Readonly<Record<string, string>> | undefined,
): SeparatedConfiguration['secrets'] {
  return new Map(Object.entries(sealed ?? {}).map(([name, it]) => [name, new Sensitive(it)]))
}

function revealSecrets(secrets: SeparatedConfiguration['secrets']): Record<string, string> {
  return Object.fromEntries([...secrets].map(([name, it]) => [name, it.reveal()]))
}
