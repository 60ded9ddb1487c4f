import { authorize } from '../access/authorize.ts'
import type { RequestContext } from '../request/context.ts'
import type { Json } from '../base/json.ts'
import { DETOKENIZE_TOKENS_MAX } from '../base/limits.ts'
import { ok, type Answer } from '../request/response.ts'
import type { World } from '../ports/world.ts'
import { fillTokenReferences } from './fill-token-references.ts'
import { findTokenReferences } from './token-references.ts'
import type { TokenSettings } from './token-settings.ts'

/**
 * Returns `payload` with each expression in its strings replaced by what the caller may see of the token.
 *
 * Throws what findTokenReferences() and fillTokenReferences() throw.
 */
export async function detokenize(
  world: Pick<World, 'clock' | 'random' | 'keyring' | 'store'>,
  context: RequestContext,
  payload: Json,
  { privacyShown }: TokenSettings,
): Promise<Answer> {
  const permission = 'token:read'
  const references = findTokenReferences(payload)
  if (references.locations.length === 0) authorize(context, permission)
  const filling = { permission, tokensMax: DETOKENIZE_TOKENS_MAX, privacyShown } as const
  return ok((await fillTokenReferences(world, context, references, filling)).payload)
}
