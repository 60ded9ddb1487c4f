import { foldCase } from '../../../src/base/fold-case.ts'
import type { StoredToken } from '../../../src/ports/stored.ts'
import type { TokenCondition, TokenQuery } from '../../../src/ports/token-query.ts'

/** Whether `token` matches `query`: the reference for the meaning of queries in other adapters. */
export function isIn(token: StoredToken, { where, within, now }: TokenQuery): boolean {
  if (token.expiresAt !== null && token.expiresAt <= now) return false
  return isWithin(token, within) && meets(token, where)
}

/** Whether one of the token's containers is one of `paths` or lies below it; null for any. */
export function isWithin({ containers }: StoredToken, paths: readonly string[] | null): boolean {
  return paths?.some((path) => containers.some((it) => it.startsWith(path))) ?? true
}

function meets(token: StoredToken, condition: TokenCondition): boolean {
  switch (condition.kind) {
    case 'all':
      return condition.of.every((it) => meets(token, it))
    case 'any':
      return condition.of.some((it) => meets(token, it))
    case 'not':
      return !meets(token, condition.of)
    case 'id':
      return condition.ids.includes(token.id)
    case 'type':
      return token.type === condition.type
    case 'container': {
      const { path, below } = condition
      return token.containers.some((it) => it === path || (below && it.startsWith(path)))
    }
    case 'fingerprint':
      return token.fingerprint === condition.fingerprint
    case 'index':
      return token.indexes.some((it) => Buffer.compare(it, condition.hash) === 0)
    case 'metadata': {
      const { key, value, exact } = condition
      if (token.metadata === null || !Object.hasOwn(token.metadata, key)) return false
      const own = token.metadata[key]!
      return exact ? own === value : foldCase(own) === foldCase(value)
    }
    case 'made-by':
      return (condition.how === 'created' ? token.createdBy : token.modifiedBy) === condition.id
    case 'made-at': {
      const { how, from, to } = condition
      const at = how === 'created' ? token.createdAt : token.modifiedAt
      return at !== null && at >= (from ?? -Infinity) && at <= (to ?? Infinity)
    }
    default:
      throw new TypeError('Cannot list tokens: a condition is of no known kind', {
        cause: condition satisfies never,
      })
  }
}
