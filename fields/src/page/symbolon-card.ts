/**
 * `<symbolon-card public-key="key_...">`: the fields of a card in one iframe of the vault's origin.
 *
 * The page mounts and styles the fields, and gets a token. What is typed never reaches the page.
 */
import type { CardFieldName, RoleConfiguration } from '../protocol/messages.ts'
import { brandsIn } from './card-attributes.ts'
import { wordsOf } from './frame-element.ts'
import { SubmittingElement } from './submitting-element.ts'

const DEFAULT_FIELDS: readonly CardFieldName[] = ['number', 'expiry', 'cvc']

export class SymbolonCard extends SubmittingElement {
  protected override configure(): RoleConfiguration {
    const fields = wordsOf(this, 'fields') as CardFieldName[] | null
    return { role: 'card', fields: fields ?? DEFAULT_FIELDS, brands: brandsIn(this), group: null }
  }
}
