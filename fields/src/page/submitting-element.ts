import type { FieldsToken, TokenOptions } from '../protocol/messages.ts'
import { type Authorize, FrameElement } from './frame-element.ts'

/** An element with fields whose values become a token. */
export abstract class SubmittingElement extends FrameElement {
  /**
   * Stores what was typed and returns its token, without data. Rejects with a FieldsError: `incomplete` if a field is invalid,
   * which then shows its error and gets the focus. Two calls with the same values make one token, also after a timeout.
   */
  async tokenize(options: TokenOptions = {}): Promise<FieldsToken> {
    await this.prepare()
    return (await this.submit({ type: 'tokenize', options })) as FieldsToken
  }

  /**
   * Updates a stored token with what was typed, such as only its code with `fields="cvc"`. `authorize` gets the nonce of the
   * iframe's session, and resolves once the page's backend has authorized the session to update this one token.
   */
  async update(
    tokenId: string,
    authorize: Authorize,
    options: TokenOptions = {},
  ): Promise<FieldsToken> {
    await this.prepare()
    const call = { type: 'update', tokenId, options } as const
    return (await this.callAuthorized(authorize, call)) as FieldsToken
  }

  /** Does what has to be done before each submission. */
  protected async prepare(): Promise<void> {}
}
