/**
 * `<symbolon-reveal public-key="key_...">`: shows a stored card to its owner, in an iframe of the vault's origin.
 *
 * The iframe opens a session and keeps its key. The page gets the nonce, and its backend authorizes the session for one token.
 */
import type { RoleConfiguration } from '../protocol/messages.ts'
import { type Authorize, FrameElement } from './frame-element.ts'

export class SymbolonReveal extends FrameElement {
  /**
   * Shows the token. `authorize` gets the nonce of the iframe's session, and resolves once the page's backend has authorized the
   * session: `POST /sessions/authorize` with the transform `reveal` for this one id. Rejects with a FieldsError.
   */
  async reveal(tokenId: string, authorize: Authorize): Promise<void> {
    await this.callAuthorized(authorize, { type: 'reveal', tokenId })
  }

  protected override configure(): RoleConfiguration {
    return { role: 'reveal' }
  }
}
