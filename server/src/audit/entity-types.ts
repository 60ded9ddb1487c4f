import { descriptionOf, ENTITY_NAMES } from '../ports/store/entities.ts'

/** Entity types whose events come from decisions, or from changes that are not described as those of entities. */
const OTHER_TYPES = ['log', 'reactor_result', 'report', 'token', 'transaction']

/** The entities whose changes have events. */
const AUDITED = ENTITY_NAMES.filter((it) =>
  Object.values(descriptionOf(it).changes).some(({ event }) => event !== null),
)

/**
 * Entity types of the audit log, for people to choose from, in alphabetical order.
 *
 * The audit log accepts any type; one that is not in this list can still be queried.
 */
export const ENTITY_TYPES: readonly string[] = [...OTHER_TYPES, ...AUDITED].sort()

/** Returns the display name of an entity type. */
export function titleOf(entityType: string): string {
  const words = entityType.replaceAll('_', ' ')
  return words.slice(0, 1).toUpperCase() + words.slice(1)
}
