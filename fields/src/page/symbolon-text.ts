/** `<symbolon-text public-key="key_..." label="IBAN">`: a field for any other secret, stored as a token. */
import type { RoleConfiguration } from '../protocol/messages.ts'
import { SubmittingElement } from './submitting-element.ts'

export class SymbolonText extends SubmittingElement {
  /** `token-type` is any token type whose data is a string, by default `token`. */
  protected override configure(): RoleConfiguration {
    const label = this.getAttribute('label') ?? ''
    return { role: 'text', label, tokenType: this.getAttribute('token-type') ?? 'token' }
  }
}
