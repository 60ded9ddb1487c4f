/** Names the brands of a number, above the end of its field. As text, since the card networks own their logos. */
import { brandOf, type BrandName } from '../card/brands.ts'

/** Replacements for titles that are too long beside a label. */
const SHORT_TITLES: Readonly<Partial<Record<BrandName, string>>> = {
  'american-express': 'Amex',
  'diners-club': 'Diners',
}

export class BrandMark {
  /** Empty while the brand is unknown. */
  readonly element: HTMLElement

  constructor(id: string) {
    this.element = document.createElement('span')
    this.element.id = id
    this.element.className = 'brand-mark'
  }

  /** Names these brands. */
  show(brands: readonly BrandName[]): void {
    const titles = brands.map((it) => SHORT_TITLES[it] ?? brandOf(it).title)
    if (this.element.textContent === titles.join(' ')) return
    // Without the spaces, screen readers would join the names.
    const marks = titles.flatMap((it, at) => (at === 0 ? [markOf(it)] : [' ', markOf(it)]))
    this.element.replaceChildren(...marks)
  }
}

function markOf(title: string): HTMLElement {
  const mark = document.createElement('span')
  mark.className = 'brand'
  mark.textContent = title
  return mark
}
