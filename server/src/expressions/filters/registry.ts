import { aliasFilters } from './aliases.ts'
import { arrayFilters } from './arrays.ts'
import { cardFilters } from './cards.ts'
import { dateFilters } from './dates.ts'
import { encodingFilters } from './encodings.ts'
import type { Filter } from './filter.ts'
import { maskFilters } from './masks.ts'
import { numberFilters } from './numbers.ts'
import { textFilters } from './texts.ts'
import { valueFilters } from './values.ts'

/**
 * All filters, by name. A map rather than an object, so that inherited names do not match.
 *
 * To add one, write it in the file of its kind and describe it in docs/expressions.md.
 */
export const FILTERS: ReadonlyMap<string, Filter> = new Map(
  [
    valueFilters,
    maskFilters,
    cardFilters,
    aliasFilters,
    encodingFilters,
    textFilters,
    numberFilters,
    arrayFilters,
    dateFilters,
  ].flatMap((filters) => Object.entries(filters)),
)
