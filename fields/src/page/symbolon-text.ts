/** `<symbolon-text public-key="key_..." label="IBAN">`: a field for any other secret, stored as a token. */
import type { FieldsToken, RoleConfiguration, TokenOptions } from '../protocol/messages.ts'
import { type Authorize, FrameElement } from './frame-element.ts'

export class SymbolonText extends FrameElement {
  /** Stores the text and returns its token, without data. Rejects with a FieldsError: `incomplete` if it is empty. */
  async tokenize(options: TokenOptions = {}): Promise<FieldsToken> {
    return (await this.submit({ type: 'tokenize', options })) as FieldsToken
  }

  /** Replaces the data of a stored token with what was typed, like `update()` of a `<symbolon-card>`. */
  async update(
    tokenId: string,
    authorize: Authorize,
    options: TokenOptions = {},
  ): Promise<FieldsToken> {
    return (await this.callAuthorized(authorize, {
      type: 'update',
      tokenId,
      options,
    })) as FieldsToken
  }

  /** `token-type` is any token type whose data is a string, by default `token`. */
  protected override configure(): RoleConfiguration {
    const label = this.getAttribute('label') ?? ''
    return { role: 'text', label, tokenType: this.getAttribute('token-type') ?? 'token' }
  }
}
