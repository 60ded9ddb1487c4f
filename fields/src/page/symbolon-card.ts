/**
 * `<symbolon-card public-key="key_...">`: the fields of a card in one iframe of the vault's origin.
 *
 * The page mounts and styles the fields, and gets a token. What is typed never reaches the page.
 */
import type {
  CardFieldName,
  FieldsToken,
  RoleConfiguration,
  TokenOptions,
} from '../protocol/messages.ts'
import { brandsIn } from './card-attributes.ts'
import { type Authorize, FrameElement, wordsOf } from './frame-element.ts'

const DEFAULT_FIELDS: readonly CardFieldName[] = ['number', 'expiry', 'cvc']

export class SymbolonCard extends FrameElement {
  /**
   * Stores the card and returns its token, without data. Rejects with a FieldsError: `incomplete` if a field is invalid, which
   * then shows its error and gets the focus. Two calls with the same values make one token, also after a timeout.
   */
  async tokenize(options: TokenOptions = {}): Promise<FieldsToken> {
    return (await this.submit({ type: 'tokenize', options })) as FieldsToken
  }

  /**
   * Updates a stored card with what was typed, such as only its code with `fields="cvc"`. `authorize` gets the nonce of the
   * iframe's session, and resolves once the page's backend has authorized the session to update this one token.
   */
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

  protected override configure(): RoleConfiguration {
    const fields = wordsOf(this, 'fields') as CardFieldName[] | null
    return { role: 'card', fields: fields ?? DEFAULT_FIELDS, brands: brandsIn(this), group: null }
  }
}
