import type { Json, JsonObject } from '../../src/base/json.ts'
import type { Method } from '../kit/still-vault.ts'
import { ITS_FINGERPRINT, MINE, THEIRS, type BallastName, type LengthsStage } from './stage.ts'

export interface LengthsRequest {
  readonly name: string
  readonly method: Method
  readonly path: string
  readonly key: string
  readonly headers?: Record<string, string>
  readonly body?: Json
  /** Whether it is granted, and reads the large ballast. */
  readonly readsMuch: boolean
}

/** Returns every request that names the token `id`, by every caller and with every ballast. */
export function requestsFor(stage: LengthsStage, id: string): LengthsRequest[] {
  const ballasts = Object.entries(stage.ballast) as [BallastName, readonly string[]][]
  return ballasts.flatMap(([ballastName, ballast]) =>
    (['denied', 'redacted', 'public'] as const).flatMap((caller) =>
      templatesFor(stage, id, ballast)
        .filter((it) => caller !== 'public' || it.forPublicKeys === true)
        .filter((it) => ballast.length === 0 || it.alone !== true)
        .map(({ alone: _alone, forPublicKeys: _public, ...it }) => ({
          ...it,
          name: `${it.name} by ${caller}, ${ballastName}`,
          key: stage.keys[caller],
          readsMuch:
            it.everything === true ||
            (ballastName === 'ballast for the limit' &&
              (caller === 'redacted' || it.skips === true)),
        })),
    ),
  )
}

interface RequestTemplate {
  readonly name: string
  readonly method: Method
  readonly path: string
  readonly headers?: Record<string, string>
  readonly body?: Json
  /** Whether it cannot name further tokens. */
  readonly alone?: true
  /** Whether a token that the caller may not see is left out, and the others are shown. */
  readonly skips?: true
  /** Whether it lists all the ballast. */
  readonly everything?: true
  readonly forPublicKeys?: true
}

function templatesFor(
  { reactorId }: LengthsStage,
  id: string,
  ballast: readonly string[],
): RequestTemplate[] {
  const ids = [...ballast, id]
  const values = ids.map((it) => `{{ ${it} }}`)
  const destination = { 'bt-proxy-url': 'https://example.com/x' }
  const listed = `id=${ids.join('&id=')}&size=100`
  const query = ids.map((it) => `id:"${it}"`).join(' OR ')
  const react = `/reactors/${reactorId}/react`
  const duplicates = ids.map(duplicateOf(id))
  const expressions: Record<string, Json> = {
    values,
    filters: values.map((it) => it.replace(' }}', " | default: 'x' }}")),
    'a filter that fails': [...values, `{{ ${id} | slice: 'x' }}`],
    'whole tokens': ids.map((it) => `{{ token: ${it} }}`),
    'a text': `all: ${values.join(' ')}`,
    'an unknown token as well': [...values, '{{ no such token }}'],
  }
  return [
    { name: 'get', method: 'GET', path: `/tokens/${id}`, alone: true },
    {
      name: 'update',
      method: 'PATCH',
      path: `/tokens/${id}`,
      body: { data: { a: 'b' } },
      alone: true,
    },
    { name: 'update of nothing', method: 'PATCH', path: `/tokens/${id}`, body: {}, alone: true },
    { name: 'delete', method: 'DELETE', path: `/tokens/${id}`, alone: true },
    { name: 'list', method: 'GET', path: `/tokens?${listed}`, skips: true },
    { name: 'v2 list', method: 'GET', path: `/v2/tokens?${listed}`, skips: true },
    { name: 'list of all', method: 'GET', path: '/tokens?size=100', alone: true, everything: true },
    ...['/tokens/search', '/v2/tokens/search'].map((path) => ({
      name: path,
      method: 'POST' as const,
      path,
      body: { query, size: 100 },
      skips: true as const,
    })),
    ...Object.entries(expressions).flatMap(([what, body]): RequestTemplate[] => [
      { name: `detokenize ${what}`, method: 'POST', path: '/detokenize', body },
      { name: `proxy ${what}`, method: 'POST', path: '/proxy', headers: destination, body },
      {
        name: `dry run ${what}`,
        method: 'POST',
        path: '/proxy',
        headers: { ...destination, 'bt-proxy-dry-run': 'true' },
        body,
      },
      { name: `react ${what}`, method: 'POST', path: react, body: { args: body } },
      { name: `react-async ${what}`, method: 'POST', path: `${react}-async`, body: { args: body } },
    ]),
    {
      name: 'create with its id',
      method: 'POST',
      path: '/tokens',
      body: { type: 'token', id, data: 'x', containers: [THEIRS] },
      alone: true,
      forPublicKeys: true,
    },
    {
      name: 'create its duplicate',
      method: 'POST',
      path: '/tokens',
      body: duplicates.at(-1)!,
      alone: true,
      forPublicKeys: true,
    },
    {
      name: 'tokenize duplicates',
      method: 'POST',
      path: '/tokenize',
      body: duplicates,
      skips: true,
      forPublicKeys: true,
    },
  ]
}

/** Returns a function that gives a token request which has the token of an id as its duplicate. */
function duplicateOf(id: string): (it: string) => JsonObject {
  return (it) => ({
    type: 'token',
    data: 'y',
    containers: [it === id ? THEIRS : MINE],
    fingerprint_expression: it === id ? ITS_FINGERPRINT : `{{ '${it}' }}`,
    deduplicate_token: true,
  })
}
