import type { RequestContext } from '../request/context.ts'
import { isJsonObject, type Json } from '../base/json.ts'
import { ServiceError } from '../base/service-error.ts'
import { created, type Answer } from '../request/response.ts'
import type { World } from '../ports/world.ts'
import { parseDraft } from './draft.ts'
import { makeTokens } from './make-tokens.ts'
import { renderBuiltToken } from './render-built-token.ts'
import type { TokenSettings } from './token-settings.ts'

/**
 * Creates one token and returns it, with its data shown as the caller's create permission allows.
 *
 * Throws what parseDraft() and makeTokens() throw. Source: interface.md, Create a token.
 */
export async function createToken(
  world: Pick<World, 'clock' | 'random' | 'keyring' | 'store'>,
  context: RequestContext,
  body: Json,
  settings: TokenSettings,
): Promise<Answer> {
  if (!isJsonObject(body)) {
    throw new ServiceError('token_invalid', { error: ['The token must be an object.'] })
  }
  const draft = parseDraft(body, world.clock.now(), (member) => member)
  let id = ''
  return makeTokens(world, context, [draft], {
    renderBuilt: (built) => {
      id = built.token.id
      return renderBuiltToken(context, built, settings)
    },
    answer: ([rendered]) => created(rendered!, `/tokens/${encodeURIComponent(id)}`),
  })
}
