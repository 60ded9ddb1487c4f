/** Attributes shared by all elements with card fields. */
import type { BrandName } from '../card/brands.ts'
import { wordsOf } from './frame-element.ts'

/** Returns the accepted brands, such as `brands="visa mastercard"`; null for all. The iframe validates them. */
export function brandsIn(element: HTMLElement): readonly BrandName[] | null {
  return wordsOf(element, 'brands') as BrandName[] | null
}
