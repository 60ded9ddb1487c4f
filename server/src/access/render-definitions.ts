import type { JsonObject } from '../base/json.ts'
import { renderUnreadable } from '../http/definitions.ts'
import type { StoredDefinition } from '../ports/stored.ts'
import type { World } from '../ports/world.ts'
import { unreadableIn } from './open-value.ts'

/**
 * Renders the items of a list with `render`. A damaged one is shown without its configuration, as unreadable, so that it does not
 * hide the others; the log names it.
 */
export async function renderDefinitions<Stored extends StoredDefinition>(
  { log }: Pick<World, 'log'>,
  tenantId: string,
  items: readonly Stored[],
  render: (it: Stored) => Promise<JsonObject>,
): Promise<JsonObject[]> {
  return await Promise.all(
    items.map(async (it) => {
      try {
        return await render(it)
      } catch (error) {
        const unreadable = unreadableIn(error)
        if (unreadable === null) throw error
        log.error('value_unreadable', unreadable, { tenant: tenantId, ...unreadable.value })
        return renderUnreadable(tenantId, it)
      }
    }),
  )
}
