/** Requests made from the document alone: operations, parameters, headers and bodies, as described or almost. */
import type { Dice } from '../../crash/dice.ts'
import { isJsonObject, type Json, type JsonObject } from '../../src/base/json.ts'
import type { Method } from '../kit/still-vault.ts'
import type { Cast } from './cast.ts'
import { resolved, type ApiDocument, type ApiParameter, type PlacedOperation } from './document.ts'
import { anyJson, mutated, pick, uuid, valueOf, type ValueSource } from './values.ts'

export interface GeneratedRequest {
  /** What it was made for; a mutation may lead it elsewhere. */
  readonly operation: PlacedOperation
  readonly method: Method
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Buffer | undefined
}

type ChangedPart = 'body' | 'query' | 'path' | 'key' | 'headers' | 'type' | 'method'

/** Returns a request for `operation`: as described, or with one part of it changed. */
export function requestFor(
  operation: PlacedOperation,
  document: ApiDocument,
  cast: Cast,
  dice: Dice,
): GeneratedRequest {
  const known = (path: string): string | undefined => cast.known(operation.path, path, dice)
  const source: ValueSource = { document, dice, known }
  const changed: ChangedPart | null =
    dice() < 0.6
      ? null
      : pick(dice, ['body', 'body', 'body', 'query', 'path', 'key', 'headers', 'type', 'method'])
  const parameters = (operation.parameters ?? []).map((it) => resolved(document, it))
  const body = bodyOf(operation, source, changed === 'body')
  const key = changed === 'key' ? cast.anyKey(dice) : cast.keyFor(operation, dice)
  return {
    operation,
    method: methodFor(operation, dice, changed === 'method'),
    target:
      pathFor(operation, cast, dice, changed === 'path') +
      queryFor(parameters, source, changed === 'query'),
    headers: {
      ...(key === undefined ? {} : { 'bt-api-key': key }),
      ...headersFor(parameters, cast, dice, changed === 'headers'),
      ...(body === undefined
        ? {}
        : { 'content-type': typeFor(operation, dice, changed === 'type') }),
      ...(dice() < 0.1 ? { origin: 'https://shop.example' } : {}),
    },
    body,
  }
}

function methodFor({ method }: PlacedOperation, dice: Dice, changed: boolean): Method {
  if (changed) return pick(dice, ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
  return method === 'GET' && dice() < 0.1 ? 'HEAD' : method
}

const ODD_SEGMENTS = [
  'x',
  '%',
  '..',
  '%2e%2e',
  'a%20b',
  '%F0%9F%98%80',
  '%00',
  'key',
  'self',
  'x'.repeat(5_000),
]

function pathFor({ path }: PlacedOperation, cast: Cast, dice: Dice, changed: boolean): string {
  if (changed && dice() < 0.15)
    return `${path.replaceAll(/[{}]/g, '')}${pick(dice, ['/more', '//', ';x', '%41'])}`
  const params = cast.paramsFor(path, dice)
  const filled = path.replaceAll(/\{(\w+)\}/g, (_all, name: string) => {
    if (changed && dice() < 0.8) return dice() < 0.4 ? uuid(dice) : pick(dice, ODD_SEGMENTS)
    return encodeURIComponent(params[name] ?? uuid(dice))
  })
  return changed && dice() < 0.2 ? `${filled}/` : filled
}

function queryFor(
  parameters: readonly ApiParameter[],
  source: ValueSource,
  changed: boolean,
): string {
  const { dice } = source
  const query = new URLSearchParams()
  for (const { in: place, name, schema } of parameters) {
    if (place !== 'query' || dice() > 0.35) continue
    const value = valueOf(schema, source, name)
    for (const it of Array.isArray(value) ? value : [value]) {
      const sent = changed ? mutated(it, source) : it
      query.append(name, typeof sent === 'string' ? sent.toWellFormed() : JSON.stringify(sent))
    }
  }
  if (changed)
    query.append(
      pick(dice, ['page', 'size', 'start', 'unknown']),
      pick(dice, ['-1', '', 'x', '1e9']),
    )
  return query.size === 0 ? '' : `?${query.toString()}`.slice(0, 4_000)
}

function headersFor(
  parameters: readonly ApiParameter[],
  cast: Cast,
  dice: Dice,
  changed: boolean,
): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const { in: place, name } of parameters) {
    if (place !== 'header') continue
    if (changed && dice() < 0.4) {
      headers[name] = pick(dice, [
        '',
        'x',
        uuid(dice),
        '\u00e9\u00ff',
        'x'.repeat(600),
        'true',
        'http://a',
      ])
      continue
    }
    const [share, values] = cast.headerValues(name, dice)
    if (dice() < share) headers[name] = pick(dice, values)
  }
  if (changed)
    headers[pick(dice, ['expect', 'content-encoding', 'accept-encoding'])] = pick(dice, [
      'gzip',
      '100-continue',
      'x',
    ])
  return headers
}

function typeFor({ requestBody }: PlacedOperation, dice: Dice, changed: boolean): string {
  if (changed) {
    return pick(dice, [
      'text/plain',
      'application/json',
      'application/x-www-form-urlencoded',
      'image/png',
      '',
      'multipart/form-data',
      'text/xml; charset=utf-16',
    ])
  }
  const [described = '*/*'] = Object.keys(requestBody?.content ?? {})
  return described === '*/*'
    ? pick(dice, ['application/json', 'application/json', 'text/plain', 'text/xml'])
    : described
}

function bodyOf(
  { requestBody, method }: PlacedOperation,
  source: ValueSource,
  changed: boolean,
): string | Buffer | undefined {
  const { dice } = source
  if (requestBody === undefined)
    return changed && method !== 'GET' ? '{"not":"asked for"}' : undefined
  if (!requestBody.required && dice() < 0.3) return undefined
  const [content] = Object.values(requestBody.content)
  const value = content?.schema === undefined ? anyJson(source) : valueOf(content.schema, source)
  if (!changed) return written(withOddCase(value, dice))
  return dice() < 0.2 ? brokenText(written(value), dice) : written(mutated(value, source))
}

function written(value: Json): string {
  return JSON.stringify(value).toWellFormed()
}

/** Some clients send a few members in camel case. */
function withOddCase(value: Json, dice: Dice): Json {
  if (!isJsonObject(value) || dice() > 0.05) return value
  const entries = Object.entries(value).map(([name, it]) => {
    return [name.replaceAll(/_([a-z])/g, (_all, letter: string) => letter.toUpperCase()), it]
  })
  return Object.fromEntries(entries) as JsonObject
}

function brokenText(text: string, dice: Dice): string | Buffer {
  return pick<() => string | Buffer>(dice, [
    () => '',
    () => text.slice(0, -1),
    () => `${text},`,
    () => `\ufeff${text}`,
    () => '{"a":1e400}',
    () => '{"a":9007199254740993}',
    () => '"\\ud800"',
    () => `${'['.repeat(600)}${']'.repeat(600)}`,
    () => Buffer.from([0x22, 0xff, 0xfe, 0x22]),
    () => '{"a":1,"a":2}',
    () => 'null',
  ])()
}
