import type { SQLInputValue } from 'node:sqlite'
import type { TokenCondition } from '../../../ports/token-query.ts'
import { packId } from './ids.ts'
import { metadataIndexTerm } from '../../../ports/index-terms.ts'

/** A short list of tokens, found by an index, that may meet a condition. */
export type TokenSource =
  | { readonly kind: 'term'; readonly term: Uint8Array }
  | { readonly kind: 'fingerprint'; readonly fingerprint: string }
  | { readonly kind: 'ids'; readonly ids: readonly (string | Uint8Array)[] }

/** Returns sources that together have every token that meets `condition`; null if no index helps. */
export function sourcesOf(condition: TokenCondition): readonly TokenSource[] | null {
  switch (condition.kind) {
    case 'id':
      return [{ kind: 'ids', ids: condition.ids.map(packId) }]
    case 'index':
      return [{ kind: 'term', term: condition.hash }]
    case 'metadata':
      return [{ kind: 'term', term: metadataIndexTerm(condition.key, condition.value) }]
    case 'fingerprint':
      return [{ kind: 'fingerprint', fingerprint: condition.fingerprint }]
    case 'all': {
      const found = condition.of.map(sourcesOf).filter((it) => it !== null)
      // Matches of ids, data and fingerprints are likely rarer than those of metadata, and few
      // sources better than many.
      return found.toSorted((a, b) => weightOf(a) - weightOf(b))[0] ?? null
    }
    case 'any': {
      const found = condition.of.map(sourcesOf)
      return found.includes(null) ? null : found.flatMap((it) => it ?? [])
    }
    default:
      return null
  }
}

function weightOf(sources: readonly TokenSource[]): number {
  let weight = sources.length
  for (const it of sources) if (it.kind === 'term' && it.term.length < 32) weight += 1000
  return weight
}

/** Runs a statement and returns one column of its rows. */
export type AskSqlite = (sql: string, ...values: SQLInputValue[]) => Uint8Array[]

/**
 * Returns the internal ids of up to `count` candidates below `below`, newest first, each once;
 * fewer only if there are no more.
 */
export function candidates(
  ask: AskSqlite,
  sources: readonly TokenSource[],
  tenant: SQLInputValue,
  { below, count }: { readonly below: Uint8Array; readonly count: number },
): Uint8Array[] {
  const lists = sources.map((it) => internalIdsOf(ask, it, tenant, { below, count }))
  if (lists.length === 1 && sources[0]!.kind !== 'ids') return lists[0]!
  const sorted = lists.flat().sort((a, b) => Buffer.compare(b, a))
  const once = sorted.filter((it, n) => n === 0 || Buffer.compare(it, sorted[n - 1]!) !== 0)
  return once.slice(0, count)
}

function internalIdsOf(
  ask: AskSqlite,
  source: TokenSource,
  tenant: SQLInputValue,
  { below, count }: { readonly below: Uint8Array; readonly count: number },
): Uint8Array[] {
  switch (source.kind) {
    case 'term':
      return ask(
        `SELECT serial FROM token_indexes WHERE tenant = ? AND hash = ? AND serial < ?
         ORDER BY serial DESC LIMIT ?`,
        tenant,
        source.term,
        below,
        count,
      )
    case 'fingerprint':
      return ask(
        `SELECT serial FROM tokens INDEXED BY token_fingerprints
         WHERE tenant = ? AND fingerprint = ? AND serial < ? ORDER BY serial DESC LIMIT ?`,
        tenant,
        source.fingerprint,
        below,
        count,
      )
    case 'ids':
      return source.ids
        .flatMap((id) => [
          ...ask('SELECT serial FROM tokens WHERE tenant = ? AND name = ?', tenant, id),
          ...(typeof id === 'string'
            ? []
            : ask('SELECT serial FROM tokens WHERE tenant = ? AND serial = ?', tenant, id)),
        ])
        .filter((it) => Buffer.compare(it, below) < 0)
    default:
      throw new TypeError('Cannot list tokens: a source is of no known kind', {
        cause: source satisfies never,
      })
  }
}
