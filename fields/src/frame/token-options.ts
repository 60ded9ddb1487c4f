/**
 * Checks the members that a page sets on a token.
 *
 * The vault evaluates expressions over the data, so a page that chose them freely could have the number copied to where its
 * scripts, or its shop, can read it. Hence a closed list of members, without expressions, except in masks that show little.
 */
import type { BrandName } from '../card/brands.ts'
import type { TokenOptions } from '../protocol/messages.ts'
import { isObject } from './known-members.ts'

const MEMBERS = ['metadata', 'containers', 'mask', 'expires_at', 'deduplicate_token'] as const

/**
 * A string of a mask that is exactly one expression. The first six and last four digits of any card may be shown: PCI DSS,
 * requirement 3.4.1. Several such strings together show no more. No further arguments are allowed, since the fourth of `reveal`
 * names characters to keep.
 */
const PLAIN_MASK =
  /^\{\{ *data\.(?:expiration_(?:month|year)|number *\| *(?:last4|reveal_last: *[0-4]|reveal: *[0-6](?: *, *[0-4])?)) *\}\}$/

const MASK_FAULT =
  'A mask may show data.expiration_month, data.expiration_year, and data.number with the filter last4, reveal_last: 4 or ' +
  'reveal: 6, 4. Each expression must be a string of its own.'

/**
 * Returns a copy of `options` if they may be sent, else the errors by member.
 *
 * The copy has gone through JSON, and it is the copy that was checked: an object may look different as JSON, such as
 * `new String('{{ data }}')`, which a message can carry.
 */
export function checkTokenOptions(
  options: unknown,
):
  | { readonly options: TokenOptions }
  | { readonly errors: Readonly<Record<string, readonly string[]>> } {
  const plain = plainOf(options)
  if (!isObject(plain)) {
    return { errors: { options: ['The options must be an object that can be written as JSON.'] } }
  }
  const errors = Object.entries(plain).flatMap(([name, value]) => {
    const fault = faultOf(name, value)
    return fault === null ? [] : [[name, [fault]] as const]
  })
  return errors.length === 0 ? { options: plain } : { errors: Object.fromEntries(errors) }
}

/**
 * Returns `options` with the brand that the buyer chose, if any, as `metadata.brand`. A brand that the page set stays. So does
 * metadata that is not an object, which the vault rejects.
 */
export function withBrand(options: TokenOptions, brand: BrandName | null): TokenOptions {
  if (brand === null) return options
  const { metadata = {} } = options
  if (!isObject(metadata) || Object.hasOwn(metadata, 'brand')) return options
  return { ...options, metadata: { ...metadata, brand } }
}

function plainOf(options: unknown): unknown {
  try {
    return JSON.parse(JSON.stringify(options))
  } catch {
    // A cycle, a bigint, or nested too deeply.
    return undefined
  }
}

function faultOf(name: string, value: unknown): string | null {
  if (!(MEMBERS as readonly string[]).includes(name)) {
    return `A page cannot set this member. Use ${MEMBERS.join(', ')}.`
  }
  const { names, texts } = stringsOf(value)
  if (names.some(isTemplate)) return 'Expressions are not allowed in names.'
  if (name !== 'mask') return texts.some(isTemplate) ? 'Expressions are not allowed here.' : null
  return texts.every((it) => !isTemplate(it) || PLAIN_MASK.test(it)) ? null : MASK_FAULT
}

/** Whether the vault may not take `text` literally: `{{` opens an expression, and `{%` a tag, which the vault refuses. */
function isTemplate(text: string): boolean {
  return /\{[{%]/.test(text)
}

/** Returns all strings in a JSON value, and the names of all members. Not recursive, since a page may nest deeply. */
function stringsOf(value: unknown): {
  readonly names: readonly string[]
  readonly texts: readonly string[]
} {
  const names: string[] = []
  const texts: string[] = []
  const waiting = [value]
  while (waiting.length > 0) {
    const next = waiting.pop()
    if (typeof next === 'string') texts.push(next)
    if (typeof next !== 'object' || next === null) continue
    if (!Array.isArray(next)) names.push(...Object.keys(next))
    for (const it of Object.values(next)) waiting.push(it)
  }
  return { names, texts }
}
