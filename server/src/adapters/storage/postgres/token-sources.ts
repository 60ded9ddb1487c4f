/** Finds the tokens that may meet a condition by an index. */
import { isUuid } from '../../../base/id.ts'
import { metadataIndexTerm } from '../../../ports/index-terms.ts'
import type { TokenCondition } from '../../../ports/token-query.ts'
import { packText } from './text.ts'
import type { Parameters } from './token-conditions.ts'

/**
 * Returns the part of the condition to use as an index lookup, or null if there is none. Every token that meets the
 * whole condition meets this part.
 */
export function lookupOf(condition: TokenCondition): TokenCondition | null {
  if (weightOf(condition) === UNBOUND) return null
  if (condition.kind !== 'all') return condition
  return lookupOf(condition.of.toSorted((a, b) => weightOf(a) - weightOf(b))[0]!)
}

/** Returns a query for the internal ids, each once, of all tokens that may meet the result of lookupOf(). */
export function lookupSql(condition: TokenCondition, parameters: Parameters): string {
  switch (condition.kind) {
    case 'index':
      return indexTermSql(condition.hash, parameters)
    case 'metadata':
      return indexTermSql(metadataIndexTerm(condition.key, condition.value), parameters)
    case 'fingerprint':
      return `SELECT serial FROM tokens AS it WHERE it.tenant = $1
        AND it.fingerprint = ${parameters.add(packText(condition.fingerprint), 'text')}`
    case 'id': {
      const names = parameters.add(condition.ids.map(packText), 'text[]')
      const internalIds = parameters.add(condition.ids.filter(isUuid), 'uuid[]')
      return `SELECT serial FROM tokens AS it WHERE it.tenant = $1 AND it.name = ANY(${names})
        UNION SELECT serial FROM tokens AS it WHERE it.tenant = $1 AND it.serial = ANY(${internalIds})`
    }
    case 'any':
      return condition.of.map((it) => lookupSql(lookupOf(it)!, parameters)).join(' UNION ')
    default:
      throw new TypeError(`Cannot look tokens up by a condition of kind ${condition.kind}`)
  }
}

const UNBOUND = Number.MAX_SAFE_INTEGER

/**
 * Estimates rows: ids, index terms and fingerprints match fewer than metadata does, and a short list fewer than a long
 * one.
 */
function weightOf(condition: TokenCondition): number {
  switch (condition.kind) {
    case 'id':
    case 'index':
    case 'fingerprint':
      return 1
    case 'metadata':
      return 1_000
    case 'all':
      return Math.min(UNBOUND, ...condition.of.map(weightOf))
    case 'any':
      return condition.of.length === 0
        ? UNBOUND
        : Math.min(
            UNBOUND,
            condition.of.map(weightOf).reduce((sum, it) => sum + it, 0),
          )
    default:
      return UNBOUND
  }
}

function indexTermSql(term: Uint8Array, parameters: Parameters): string {
  const hash = parameters.add(term, 'bytea')
  return `SELECT serial FROM token_indexes WHERE tenant = $1 AND hash = ${hash}`
}
