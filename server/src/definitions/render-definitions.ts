import type { JsonObject } from '../base/json.ts'
import { renderUnreadable } from './wire.ts'
import type { StoredDefinition } from '../ports/stored.ts'
import type { World } from '../ports/world.ts'
import { UnreadableValues } from '../request/open-value.ts'

/**
 * Renders the items of a list with `render`. Shows a damaged item as unreadable, without its configuration, so that it does not hide
 * the others, and logs its name.
 */
export async function renderDefinitions<Stored extends StoredDefinition>(
  world: Pick<World, 'log'>,
  tenantId: string,
  items: readonly Stored[],
  render: (it: Stored) => Promise<JsonObject>,
): Promise<JsonObject[]> {
  const unreadable = new UnreadableValues()
  const rendered = await Promise.all(
    items.map(async (it) => {
      try {
        return await render(it)
      } catch (error) {
        unreadable.add(error)
        return renderUnreadable(tenantId, it)
      }
    }),
  )
  unreadable.log(world, tenantId)
  return rendered
}
