/** Entry of the page's script, a module: defines the elements. */
import { SymbolonCard } from './symbolon-card.ts'

export { FieldsError } from './fields-error.ts'
export { SymbolonCard }

// A page that loads two builds keeps the elements of the first.
if (customElements.get('symbolon-card') === undefined) {
  customElements.define('symbolon-card', SymbolonCard)
}

declare global {
  interface HTMLElementTagNameMap {
    'symbolon-card': SymbolonCard
  }
}
