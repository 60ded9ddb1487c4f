/**
 * Checks what a page wants of a token.
 *
 * The vault evaluates expressions over the data, so a page that chose them freely could have the number copied to where its
 * scripts, or its shop, can read it. Hence a closed list of members, in which no expression stands, except masks that show little.
 */
import type { TokenOptions } from '../protocol/messages.ts'

const MEMBERS = ['metadata', 'containers', 'mask', 'expires_at', 'deduplicate_token'] as const

/** An expression that a mask may have. Six first and four last digits may be shown of any card: PCI DSS, requirement 3.4.1. */
const PLAIN_MASK =
  /^\{\{\s*data\.(?:expiration_(?:month|year)|number\s*\|\s*reveal_(?:last:\s*[0-4]|first:\s*[0-6]))\s*\}\}$/

/** Returns `options` if they may be sent, else the flaw by member. */
export function checkTokenOptions(
  options: unknown,
):
  | { readonly options: TokenOptions }
  | { readonly errors: Readonly<Record<string, readonly string[]>> } {
  if (typeof options !== 'object' || options === null) {
    return { errors: { options: ['The options must be an object.'] } }
  }
  const plain = jsonOf(options)
  if (plain === null) return { errors: { options: ['The options must be JSON.'] } }
  const errors: Record<string, readonly string[]> = {}
  const kept: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(plain)) {
    const fault = faultOf(name, value)
    if (fault === null) kept[name] = value
    else errors[name] = [fault]
  }
  return Object.keys(errors).length === 0 ? { options: kept } : { errors }
}

/**
 * Returns `options` as they will be sent. A message can hold objects that JSON turns into strings, such as `new String()`, whose
 * text only shows then.
 */
function jsonOf(options: object): object | null {
  try {
    return JSON.parse(JSON.stringify(options)) as object
  } catch {
    // A cycle, or a BigInt.
    return null
  }
}

function faultOf(name: string, value: unknown): string | null {
  if (!(MEMBERS as readonly string[]).includes(name)) {
    return `A page cannot set this member. Use ${MEMBERS.join(', ')}.`
  }
  const texts = textsOf(value)
  if (name !== 'mask') {
    return texts.every((it) => !it.includes('{{')) ? null : 'Expressions are not allowed here.'
  }
  return texts.every((it) => !it.includes('{{') || PLAIN_MASK.test(it))
    ? null
    : 'A mask may show reveal_last: 4 or reveal_first: 6 of data.number, data.expiration_month and data.expiration_year.'
}

/** Returns all strings in a value, names of members included. */
function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, it]) => [name, ...textsOf(it)])
}
