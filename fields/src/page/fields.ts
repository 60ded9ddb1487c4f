/** Entry point of the page's script, a module: defines the elements. */
import { SymbolonCard } from './symbolon-card.ts'
import { SymbolonField, SymbolonGroup } from './symbolon-group.ts'
import { SymbolonReveal } from './symbolon-reveal.ts'
import { SymbolonText } from './symbolon-text.ts'

export { FieldsError } from './fields-error.ts'

const ELEMENTS = {
  'symbolon-card': SymbolonCard,
  // Defined before its fields, which look for it.
  'symbolon-group': SymbolonGroup,
  'symbolon-field': SymbolonField,
  'symbolon-text': SymbolonText,
  'symbolon-reveal': SymbolonReveal,
}

for (const [name, constructor] of Object.entries(ELEMENTS)) {
  // A page that loads a second build keeps the elements of the first.
  if (customElements.get(name) === undefined) customElements.define(name, constructor)
}

declare global {
  interface HTMLElementTagNameMap {
    'symbolon-card': SymbolonCard
    'symbolon-group': SymbolonGroup
    'symbolon-field': SymbolonField
    'symbolon-text': SymbolonText
    'symbolon-reveal': SymbolonReveal
  }
}
