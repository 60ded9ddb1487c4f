/**
 * Entity types of the audit log, for people to choose from.
 *
 * The audit log accepts any type; one that is not in this list can still be queried.
 */
export const ENTITY_TYPES: readonly { readonly name: string; readonly title: string }[] = [
  { name: 'token', title: 'Token' },
  { name: 'application', title: 'Application' },
  { name: 'application_key', title: 'Application key' },
  { name: 'session', title: 'Session' },
  { name: 'transaction', title: 'Transaction' },
  { name: 'reactor', title: 'Reactor' },
  { name: 'reactor_result', title: 'Reactor result' },
  { name: 'callback_secret', title: 'Callback secret' },
  { name: 'proxy', title: 'Proxy' },
  { name: 'tenant', title: 'Tenant' },
  { name: 'log', title: 'Log' },
  { name: 'report', title: 'Report' },
]

/** Returns the display name of an entity type. */
export function titleOf(entityType: string): string {
  const known = ENTITY_TYPES.find((it) => it.name === entityType)
  if (known !== undefined) return known.title
  const words = entityType.replaceAll('_', ' ')
  return words.slice(0, 1).toUpperCase() + words.slice(1)
}
