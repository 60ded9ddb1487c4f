/**
 * Parses the filter of a token list from the query parameters.
 *
 * Metadata comes in the three forms clients use: `metadata.key=value`, `metadata[key]=value`, and
 * `metadata={"key":"value"}`. Source: interface.md, List tokens.
 */
import { CONTAINER_FORM, parseContainer } from '../access/container.ts'
import { isJsonObject, type JsonObject } from '../base/json.ts'
import { METADATA_ENTRIES_MAX } from '../base/limits.ts'
import { ServiceError } from '../base/service-error.ts'
import type { QueryParameters } from '../request/query.ts'
import type { TokenCondition } from '../ports/token-query.ts'
import { TOKEN_TYPES } from './types/registry.ts'

export interface TokenFilter {
  /** Each once, in the order requested; null if none were. */
  readonly ids: readonly string[] | null
  readonly where: TokenCondition
}

/** Throws `query_invalid`. With `exact`, metadata are compared exactly. */
export function parseTokenFilter(query: QueryParameters, exact: boolean): TokenFilter {
  const ids = query.get('id')
  const once = ids === undefined ? null : [...new Set(ids)]
  const where: TokenCondition[] = [
    ...(once === null ? [] : [{ kind: 'id', ids: once } as const]),
    ...typesOf(query),
    ...[...metadataOf(query)].map(
      ([key, value]) => ({ kind: 'metadata', key, value, exact }) as const,
    ),
  ]
  return { ids: once, where: { kind: 'all', of: where } }
}

/** Parses the filters that only the newer lists support. Throws `query_invalid`. */
export function parseWiderFilter(query: QueryParameters): TokenCondition {
  const { where } = parseTokenFilter(query, true)
  const [fingerprint] = query.get('fingerprint') ?? []
  const [container] = query.get('container') ?? []
  const wider: TokenCondition[] = [where]
  if (fingerprint !== undefined) wider.push({ kind: 'fingerprint', fingerprint })
  if (container !== undefined) wider.push(containerCondition(container))
  return { kind: 'all', of: wider }
}

/** Parses `/x/`, or `/x/*` for everything below it as well; throws `query_invalid`. */
function containerCondition(text: string): TokenCondition {
  const below = text.endsWith('/*')
  const path = parseContainer(below ? text.slice(0, -1) : text)
  if (path !== null) return { kind: 'container', path, below }
  throw new ServiceError('query_invalid', { container: [`Must be ${CONTAINER_FORM}.`] })
}

function typesOf(query: QueryParameters): TokenCondition[] {
  const types = query.get('type')
  if (types === undefined) return []
  const names = TOKEN_TYPES.map((it) => it.name)
  if (types.some((it) => !names.includes(it))) {
    throw new ServiceError('query_invalid', { type: [`Must be one of ${names.join(', ')}.`] })
  }
  // Deduplicated: a parameter repeated a thousand times must not make the condition a thousand times as long.
  return [{ kind: 'any', of: [...new Set(types)].map((type) => ({ kind: 'type', type })) }]
}

function metadataOf(query: QueryParameters): ReadonlyMap<string, string> {
  const entries = new Map<string, string>()
  for (const [name, [value]] of query) {
    if (name === 'metadata') {
      for (const [key, own] of Object.entries(parseEntries(value!))) {
        if (typeof own !== 'string') throw metadataInvalid('Each value must be a string.')
        entries.set(key, own)
      }
    } else {
      const [, dotted, bracketed] = METADATA.exec(name) ?? []
      const key = dotted ?? bracketed
      if (key !== undefined) entries.set(key, value!)
    }
  }
  if (entries.size > METADATA_ENTRIES_MAX) {
    throw metadataInvalid(`At most ${METADATA_ENTRIES_MAX} entries.`)
  }
  return entries
}

const METADATA = /^metadata(?:\.([^]*)|\[([^]*)\])$/

function parseEntries(text: string): JsonObject {
  try {
    const entries: unknown = JSON.parse(text)
    if (isJsonObject(entries)) return entries
  } catch {
    // The error below reports it without repeating the input.
  }
  throw metadataInvalid('Must be an object of strings, as JSON, or write metadata.key=value.')
}

function metadataInvalid(message: string): ServiceError {
  return new ServiceError('query_invalid', { metadata: [message] })
}
