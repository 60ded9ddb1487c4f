import { authorize, visibleContainers } from '../access/authorize.ts'
import type { RequestContext } from '../request/context.ts'
import { ok, type Answer } from '../request/response.ts'
import { renderCursorPage } from '../request/pagination.ts'
import type { TokenCondition } from '../ports/token-query.ts'
import type { TenantKeys } from '../ports/keyring.ts'
import type { World } from '../ports/world.ts'
import { cursorOf, parseCursor } from './cursor.ts'
import { ReadBudget } from './read-budget.ts'
import { readGranted } from './read-granted.ts'
import { readingEvaluationContext, showTokens } from './shown-tokens.ts'
import type { TokenSettings } from './token-settings.ts'

/** A list that is read page by page. */
export interface CursorList {
  readonly permission: 'token:read' | 'token:search'
  /** Identifies the list, filters included: a cursor is valid for this list only. */
  readonly name: string
  readonly where: (keys: TenantKeys) => TokenCondition
  /** The cursor of the previous page; null starts at the newest. */
  readonly start: string | null
  readonly size: number
}

/**
 * Returns the next page of a list, newest first, with a cursor if there is more.
 *
 * Does not count the total. Throws `cursor_invalid`, `permission_missing`, `answer_too_large`, and what building the
 * condition throws.
 */
export async function pageTokens(
  world: Pick<World, 'clock' | 'log' | 'random' | 'keyring' | 'store'>,
  context: RequestContext,
  { permission, name, where, start, size }: CursorList,
  { privacyShown }: TokenSettings,
): Promise<Answer> {
  const keys = await world.keyring.open(context.tenantId)
  const now = world.clock.now()
  const condition = where(keys)
  const after = start === null ? null : parseCursor(keys, name, start)
  const query = { where: condition, within: visibleContainers(context, permission), now }
  const stretch = { after, size: size + 1 }
  const { tokens, grants, more } = await readGranted(world, context, {
    find: async () => {
      const found = await world.store.tokens.listAfter(context.tenantId, query, stretch)
      return { tokens: found.slice(0, size), more: found.length > size }
    },
    authorize: (found) => found.map((it) => authorize(context, permission, it)),
    budget: new ReadBudget(context, { slots: false }),
  })
  const evaluationContext = readingEvaluationContext(world.random, tokens.length)
  const showing = { grants, now, evaluationContext, privacyShown }
  const shown = await showTokens(world, context, tokens, showing)
  const cursor = more ? cursorOf(keys, name, tokens.at(-1)!.internalId) : null
  return ok(
    renderCursorPage(
      shown.map((it) => it.wire()),
      { size, cursor },
    ),
  )
}
