import type { RequestContext } from '../request/context.ts'
import type { Json } from '../base/json.ts'
import { maskedDataOf } from './derive.ts'
import type { BuiltToken } from './render-tokens.ts'
import type { TokenSettings } from './token-settings.ts'
import { maskOf, renderToken, renderDuplicate } from './wire.ts'

/** Renders a created or changed token for its caller, as far as the caller's create or update permission allows. */
export function renderBuiltToken(
  context: RequestContext,
  { draft, token, transform, duplicate, evaluationContext, shortLivedExpired }: BuiltToken,
  { privacyShown }: TokenSettings,
): Json {
  const { tenantId } = context
  if (duplicate === null) return renderDuplicate(token, tenantId)
  const masked = maskedDataOf(draft, evaluationContext, shortLivedExpired)
  const own =
    transform === 'reveal' ? draft.data.reveal() : transform === 'mask' ? masked : undefined
  return renderToken(token, {
    tenantId,
    data: duplicate === undefined ? own : duplicate.data,
    mask: maskOf(token),
    privacy: privacyShown,
    deduplicated: duplicate !== undefined,
  })
}
