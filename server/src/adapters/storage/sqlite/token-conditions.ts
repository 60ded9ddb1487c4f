import type { TokenCondition, TokenQuery } from '../../../ports/token-query.ts'
import type { SqliteValue } from './batch.ts'
import { packId } from './ids.ts'
import { metadataIndexTerm } from '../../../ports/index-terms.ts'
import { WAS_VISIBLE } from './visibility.ts'

/** Part of a statement, and its parameters in order. */
export interface SqlFragment {
  readonly text: string
  readonly values: readonly SqliteValue[]
}

/** The tokens hidden when a list began: the row that NOW_VISIBLE returns. */
export interface Hidden {
  readonly transactions: number
  readonly newest: number
  readonly hidden: string
}

/**
 * Returns a condition on rows of `tokens` that holds for the tokens of `query`. Its text has only
 * placeholders.
 */
export function sqlOf(
  { where, within, now }: TokenQuery,
  { transactions, newest, hidden }: Hidden,
): SqlFragment {
  return joined('AND', [
    { text: '(expires_at IS NULL OR expires_at > ?)', values: [now] },
    { text: WAS_VISIBLE, values: [transactions, newest, hidden] },
    ...(within === null ? [] : [anyContainer('OR', within.map(below))]),
    conditionSql(where),
  ])
}

/** True or false, never null, so that it can be negated. */
function conditionSql(condition: TokenCondition): SqlFragment {
  switch (condition.kind) {
    case 'all':
      return joined('AND', condition.of.map(conditionSql))
    case 'any':
      return joined('OR', condition.of.map(conditionSql))
    case 'not': {
      const { text, values } = conditionSql(condition.of)
      return { text: `NOT ${text}`, values }
    }
    case 'id':
      return {
        text: `ifnull(name, serial) IN (${condition.ids.map(() => '?').join(', ')})`,
        values: condition.ids.map(packId),
      }
    case 'type':
      return { text: 'type = ?', values: [condition.type] }
    case 'container': {
      const { path } = condition
      return anyContainer('OR', [condition.below ? below(path) : { text: '= ?', values: [path] }])
    }
    case 'fingerprint':
      return { text: 'fingerprint IS ?', values: [condition.fingerprint] }
    case 'index':
      return { text: HAS_INDEX_TERM, values: [condition.hash] }
    case 'metadata': {
      const { key, value, exact } = condition
      const term: SqlFragment = { text: HAS_INDEX_TERM, values: [metadataIndexTerm(key, value)] }
      if (!exact) return term
      const entry: SqlFragment = {
        text: 'EXISTS (SELECT 1 FROM json_each(metadata) AS it WHERE it.key = ? AND it.value = ?)',
        values: [key, value],
      }
      return joined('AND', [term, entry])
    }
    case 'made-by':
      return { text: `${condition.how}_by IS ?`, values: [packId(condition.id)] }
    case 'made-at': {
      const { how, from, to } = condition
      return {
        text: `ifnull(${how}_at BETWEEN ? AND ?, 0)`,
        values: [from ?? Number.MIN_SAFE_INTEGER, to ?? Number.MAX_SAFE_INTEGER],
      }
    }
    default:
      throw new TypeError('Cannot list tokens: a condition is of no known kind', {
        cause: condition satisfies never,
      })
  }
}

const HAS_INDEX_TERM = `EXISTS (SELECT 1 FROM token_indexes AS it
  WHERE it.tenant = tokens.tenant AND it.hash = ? AND it.serial = tokens.serial)`

/** Returns a comparison that holds for a path and every path below it. */
function below(path: string): SqlFragment {
  // Paths end with a slash, so every path below one sorts before that path followed by the last
  // code point.
  return { text: 'BETWEEN ? AND ?', values: [path, `${path}\u{10ffff}`] }
}

/** Holds if one of a token's containers meets one of `comparisons`; most tokens have only one container. */
function anyContainer(operator: 'OR', comparisons: readonly SqlFragment[]): SqlFragment {
  const on = (column: string): SqlFragment =>
    joined(
      operator,
      comparisons.map(({ text, values }) => ({ text: `${column} ${text}`, values })),
    )
  const [alone, listed] = [on('containers'), on('it.value')]
  return {
    text: `(CASE WHEN substr(containers, 1, 1) = '['
      THEN EXISTS (SELECT 1 FROM json_each(containers) AS it WHERE ${listed.text})
      ELSE ${alone.text} END)`,
    values: [...listed.values, ...alone.values],
  }
}

function joined(operator: 'AND' | 'OR', parts: readonly SqlFragment[]): SqlFragment {
  if (parts.length === 0) return { text: operator === 'AND' ? '(1)' : '(0)', values: [] }
  return {
    text: `(${parts.map(({ text }) => text).join(` ${operator} `)})`,
    values: parts.flatMap(({ values }) => values),
  }
}
