/** Attributes that all elements with fields of a card have. */
import type { BrandName } from '../card/brands.ts'
import { wordsOf } from './frame-element.ts'

/** Returns the accepted brands, such as `brands="visa mastercard"`; null for all. The iframe checks them. */
export function brandsIn(element: HTMLElement): readonly BrandName[] | null {
  return wordsOf(element, 'brands') as BrandName[] | null
}
