/**
 * Radio buttons with the brands of a co-branded card, under its number.
 *
 * In the European Economic Area the buyer may choose the brand of such a card: Regulation (EU) 2015/751, article 8(6). No brand
 * is preselected.
 */
import { brandOf, type BrandName } from '../card/brands.ts'

export class BrandChoice {
  /** Empty while there is nothing to choose. */
  readonly element: HTMLElement
  readonly #legend: string
  readonly #onChoose: () => void
  #brands: readonly BrandName[] = []
  #chosen: BrandName | null = null

  constructor(legend: string, onChoose: () => void) {
    this.#legend = legend
    this.#onChoose = onChoose
    this.element = document.createElement('div')
    this.element.className = 'brands'
    // The choice appears and disappears while the number is typed.
    this.element.setAttribute('aria-live', 'polite')
  }

  get chosen(): BrandName | null {
    return this.#chosen
  }

  /** Offers these brands. The buyer's choice stays as long as they are the same. */
  offer(brands: readonly BrandName[]): void {
    if (brands.join(' ') === this.#brands.join(' ')) return
    this.#brands = brands
    this.#chosen = null
    this.element.replaceChildren(...(brands.length > 1 ? [this.#build()] : []))
  }

  #build(): HTMLFieldSetElement {
    const fieldset = document.createElement('fieldset')
    const legend = document.createElement('legend')
    legend.textContent = this.#legend
    fieldset.append(legend, ...this.#brands.map((it) => this.#option(it)))
    return fieldset
  }

  #option(brand: BrandName): HTMLLabelElement {
    const label = document.createElement('label')
    const input = document.createElement('input')
    input.type = 'radio'
    input.name = 'brand'
    input.value = brand
    input.addEventListener('change', () => {
      this.#chosen = brand
      this.#onChoose()
    })
    label.append(input, brandOf(brand).title)
    return label
  }
}
