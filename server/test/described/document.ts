/** The OpenAPI document as the harness reads it: nothing here knows the endpoint records. */
import type { Json, JsonObject } from '../../src/base/json.ts'
import type { Method } from '../kit/still-vault.ts'

export interface ApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, ApiOperation>>>>
  readonly components: {
    readonly schemas: Record<string, JsonObject>
    readonly parameters: Record<string, ApiParameter>
    readonly headers: Record<string, ApiHeader>
    readonly responses: Record<string, ApiResponse>
  }
}

export interface ApiOperation {
  readonly description: string
  readonly security?: readonly unknown[]
  readonly parameters?: readonly (ApiParameter & { readonly $ref?: string })[]
  readonly requestBody?: {
    readonly required: boolean
    readonly content: Readonly<Record<string, { readonly schema?: JsonObject }>>
  }
  readonly responses: Record<string, ApiResponse & { readonly $ref?: string }>
}

export interface ApiParameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly schema: JsonObject
}

export interface ApiHeader {
  readonly required: boolean
}

export interface ApiResponse {
  readonly headers: Record<string, ApiHeader & { readonly $ref?: string }>
  readonly content?: Record<string, { readonly schema?: JsonObject }>
  readonly 'x-codes'?: string[]
}

/** An operation with its place in the document. */
export interface PlacedOperation extends ApiOperation {
  readonly method: Method
  readonly path: string
}

export function operationsOf({ paths }: ApiDocument): PlacedOperation[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, it]) => {
      return { ...it, method: method.toUpperCase() as Method, path }
    }),
  )
}

/** Follows a reference into the components. */
export function resolved<It extends object>(
  { components }: ApiDocument,
  it: It & { readonly $ref?: Json },
): It {
  if (typeof it.$ref !== 'string') return it
  const [, kind, name] = /^#\/components\/(\w+)\/(\w+)$/.exec(it.$ref) ?? []
  const found = (components as Record<string, Record<string, unknown>>)[kind!]?.[name!]
  if (found === undefined) throw new Error(`The document has no ${it.$ref}`)
  return found as It
}

/**
 * Returns the paths of the document that a request target is at: the literal one first, since `/tokens/search` is also a token's.
 * The router takes `/reactors//` for a reactor whose id is empty; `segment` says whether that counts.
 */
export function pathsAt(
  { paths }: ApiDocument,
  target: string,
  segment: '[^/]+' | '[^/]*' = '[^/]+',
): string[] {
  const path = target.split(/[?#]/, 1)[0]!
  if (path.startsWith('/proxy/')) return ['/proxy/{below}']
  return Object.keys(paths)
    .filter((it) => {
      const pattern = it.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, segment)
      return new RegExp(`^${pattern}/?$`).test(path)
    })
    .toSorted((a, b) => Number(a.includes('{')) - Number(b.includes('{')))
}

/** Returns the path whose operation a request reaches. */
export function reachedPath(
  document: ApiDocument,
  { method, target }: { readonly method: Method; readonly target: string },
): string | undefined {
  const name = (method === 'HEAD' ? 'GET' : method).toLowerCase()
  const found = [...pathsAt(document, target), ...pathsAt(document, target, '[^/]*')]
  // HEAD is not forwarded.
  return found.find(
    (it) => document.paths[it]![name] !== undefined && !(method === 'HEAD' && isProxy(it)),
  )
}

export function isProxy(path: string): boolean {
  return path.startsWith('/proxy/') || path === '/proxy'
}
