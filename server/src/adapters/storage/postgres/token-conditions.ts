import { isUuid } from '../../../base/id.ts'
import type { TokenCondition, TokenQuery } from '../../../ports/token-query.ts'
import { metadataIndexTerm } from '../../../ports/index-terms.ts'
import type { PostgresValue } from './session.ts'
import { packText } from './text.ts'
import { lookupOf, lookupSql } from './token-sources.ts'
import { VISIBLE, livesAt } from './visibility.ts'

/** Collects the parameters of a statement while it is built. */
export class Parameters {
  readonly values: PostgresValue[] = []

  /** Adds a parameter and returns its placeholder. Only the placeholder goes into the text. */
  add(value: PostgresValue, type: string): string {
    return `$${this.values.push(value)}::${type}`
  }
}

/** The tokens that a query selects, as parts of a statement in which each is a row of `tokens`. */
export interface Selection {
  readonly from: string
  readonly where: string
  /** The column to sort by; with a lookup, its index yields this order. */
  readonly sortKey: string
}

/**
 * Returns the selection; the tenant is parameter $1.
 *
 * For a tenant that the statistics do not know yet, the planner estimates one row, and would then join by comparing
 * every token with every match. So nothing here may become such a join: LATERAL and LIMIT force matches to be looked up
 * one by one, and further index terms stay subqueries. Decision 0065.
 */
export function selectionOf({ where, within, now }: TokenQuery, parameters: Parameters): Selection {
  const lookup = lookupOf(where)
  const parts = ['tokens.tenant = $1', livesAt(parameters.add(now, 'bigint')), VISIBLE]
  if (within !== null) parts.push(inOneOf(within, parameters))
  parts.push(conditionSql(where, parameters, lookup))
  const condition = parts.join(' AND ')
  if (lookup === null) return { from: 'tokens', where: condition, sortKey: 'tokens.serial' }
  const from = `(${lookupSql(lookup, parameters)}) AS found (serial)
    CROSS JOIN LATERAL (SELECT * FROM tokens WHERE tokens.tenant = $1
      AND tokens.serial = found.serial LIMIT 1) AS tokens`
  return { from, where: condition, sortKey: 'found.serial' }
}

/** Returns a condition that is true or false, never null, so that NOT works. The rows match `lookup` already. */
function conditionSql(
  condition: TokenCondition,
  parameters: Parameters,
  lookup: TokenCondition | null,
): string {
  const sqlOf = (it: TokenCondition): string => conditionSql(it, parameters, lookup)
  const text = (it: string): string => parameters.add(packText(it), 'text')
  switch (condition.kind) {
    case 'all':
      return joined('AND', condition.of.map(sqlOf))
    case 'any':
      return joined('OR', condition.of.map(sqlOf))
    case 'not':
      return `(NOT ${sqlOf(condition.of)})`
    case 'id':
      return `(${idsSql(condition.ids, parameters)})`
    case 'type':
      return `(type = ${text(condition.type)})`
    case 'container':
      return meetsOneOf([
        condition.below
          ? below(condition.path, parameters)
          : (column) => `${column} = ${text(condition.path)}`,
      ])
    case 'fingerprint':
      return `(coalesce(fingerprint = ${text(condition.fingerprint)}, false))`
    case 'index':
      return condition === lookup ? '(true)' : hasIndexTerm(condition.hash, parameters)
    case 'metadata': {
      const { key, value, exact } = condition
      const term =
        condition === lookup ? '(true)' : hasIndexTerm(metadataIndexTerm(key, value), parameters)
      if (!exact) return term
      return `(CASE WHEN ${term} THEN coalesce(
        metadata::jsonb ->> ${text(key)} = ${text(value)}, false) ELSE false END)`
    }
    case 'made-by':
      return `(coalesce(${condition.how}_by = ${text(condition.id)}, false))`
    case 'made-at': {
      const [from, to] = [
        condition.from ?? Number.MIN_SAFE_INTEGER,
        condition.to ?? Number.MAX_SAFE_INTEGER,
      ]
      const bounds = [from, to].map((it) => parameters.add(it, 'bigint'))
      return `(coalesce(${condition.how}_at BETWEEN ${bounds.join(' AND ')}, false))`
    }
    default:
      throw new TypeError('Cannot list tokens: a condition is of no known kind', {
        cause: condition satisfies never,
      })
  }
}

function idsSql(ids: readonly string[], parameters: Parameters): string {
  const names = parameters.add(ids.map(packText), 'text[]')
  const internalIds = parameters.add(ids.filter(isUuid), 'uuid[]')
  return `coalesce(name = ANY(${names}), tokens.serial = ANY(${internalIds}))`
}

/** IS TRUE keeps the planner from turning the subquery into a join. */
function hasIndexTerm(term: Uint8Array, parameters: Parameters): string {
  return `(EXISTS (SELECT 1 FROM token_indexes AS it WHERE it.tenant = tokens.tenant
    AND it.hash = ${parameters.add(term, 'bytea')} AND it.serial = tokens.serial) IS TRUE)`
}

/** Returns a comparison of a column with a path that matches the whole subtree. */
function below(path: string, parameters: Parameters): (column: string) => string {
  const text = parameters.add(packText(path), 'text')
  return (column) => `left(${column}, length(${text})) = ${text}`
}

/** Holds when one of the token's containers is one of `paths` or lies below it. */
export function inOneOf(
  paths: readonly string[],
  parameters: Parameters,
  containers = 'containers',
): string {
  return meetsOneOf(
    paths.map((it) => below(it, parameters)),
    containers,
  )
}

/** Holds when one of the token's containers meets one of `comparisons`; most tokens have a single container. */
function meetsOneOf(
  comparisons: readonly ((column: string) => string)[],
  containers = 'containers',
): string {
  const on = (column: string): string =>
    joined(
      'OR',
      comparisons.map((it) => it(column)),
    )
  return `(CASE WHEN left(${containers}, 1) = '['
    THEN EXISTS (SELECT 1 FROM jsonb_array_elements_text(${containers}::jsonb) AS it (path)
      WHERE ${on('it.path')})
    ELSE ${on(containers)} END)`
}

function joined(operator: 'AND' | 'OR', parts: readonly string[]): string {
  if (parts.length === 0) return operator === 'AND' ? '(true)' : '(false)'
  return `(${parts.join(` ${operator} `)})`
}
