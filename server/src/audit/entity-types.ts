/**
 * The kinds of things that the audit log is about, for people to choose from.
 *
 * The audit log itself takes any; what is not in this list can still be asked for.
 */
export const ENTITY_TYPES: readonly { readonly name: string; readonly title: string }[] = [
  { name: 'token', title: 'Token' },
  { name: 'application', title: 'Application' },
  { name: 'application_key', title: 'Application key' },
  { name: 'session', title: 'Session' },
  { name: 'transaction', title: 'Transaction' },
  { name: 'reactor', title: 'Reactor' },
  { name: 'callback_secret', title: 'Callback secret' },
  { name: 'proxy', title: 'Proxy' },
  { name: 'tenant', title: 'Tenant' },
  { name: 'log', title: 'Log' },
  { name: 'report', title: 'Report' },
]

/** Returns the name of a kind as people read it. */
export function titleOf(entityType: string): string {
  const known = ENTITY_TYPES.find((it) => it.name === entityType)
  if (known !== undefined) return known.title
  const words = entityType.replaceAll('_', ' ')
  return words.slice(0, 1).toUpperCase() + words.slice(1)
}
