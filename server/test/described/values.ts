/** Values that a JSON Schema of the document allows, and values that it may not. */
import { isJsonObject, type Json, type JsonObject } from '../../src/base/json.ts'
import type { Dice } from '../../crash/dice.ts'
import { resolved, type ApiDocument } from './document.ts'

export interface ValueSource {
  readonly document: ApiDocument
  readonly dice: Dice
  /** Returns a value made earlier for the member at `path`, such as `application.id`, or undefined. */
  readonly known: (path: string) => string | undefined
}

/** Returns a value that `schema` allows. */
export function valueOf(schema: JsonObject, source: ValueSource, path = '', depth = 0): Json {
  const { dice, document } = source
  const { $ref, anyOf, enum: values, const: only, examples } = schema
  if ($ref !== undefined) return valueOf(resolved(document, schema), source, path, depth)
  if (only !== undefined) return only
  if (Array.isArray(values)) return pick(dice, values)
  if (Array.isArray(anyOf)) {
    return valueOf(pick(dice, anyOf as JsonObject[]), source, path, depth)
  }
  const known = source.known(path)
  if (known !== undefined && dice() < 0.6) return known
  if (Array.isArray(examples) && dice() < 0.6) {
    const example = pick(dice, examples)
    return isJsonObject(example) && schema['properties'] !== undefined
      ? { ...optional(schema, source, path, depth), ...withKnown(example, source, path) }
      : example
  }
  const { type } = schema
  const one = Array.isArray(type) ? pick(dice, type) : type
  if (one === 'null') return null
  if (one === 'boolean') return dice() < 0.5
  if (one === 'integer' || one === 'number') return integer(schema, dice)
  if (one === 'string') return text(schema, dice)
  if (one === 'array') return array(schema, source, path, depth)
  if (one === 'object') return object(schema, source, path, depth)
  return anyJson(source, depth)
}

export function pick<It>(dice: Dice, items: readonly It[]): It {
  return items[Math.floor(dice() * items.length)]!
}

function integer({ minimum, maximum }: JsonObject, dice: Dice): number {
  const [least, most] = [Number(minimum ?? 0), Number(maximum ?? 1_000)]
  const drawn = dice()
  if (drawn < 0.05) return least
  if (drawn < 0.1) return most
  return Math.min(most, least + Math.floor(dice() * 20))
}

const PIECES = ['a', 'Z', '7', ' ', '-', '_', 'é', '漢', '😀', '\u202e', "'", '"', '<', '%', '\\']

/** Text without the characters that end a line, which some patterns forbid. */
function text({ minLength, maxLength, format, pattern }: JsonObject, dice: Dice): string {
  if (format === 'uuid') return uuid(dice)
  if (format === 'date-time') return '2026-03-01T12:00:00Z'
  const least = Number(minLength ?? 0)
  const most = Number(maxLength ?? 40)
  const length = dice() < 0.03 ? most : Math.min(most, least + Math.floor(dice() * 12))
  const pieces = dice() < 0.6 || pattern === undefined ? PIECES.slice(0, 6) : PIECES
  return Array.from({ length }, () => pick(dice, pieces)).join('')
}

export function uuid(dice: Dice): string {
  const hex = (length: number): string =>
    Array.from({ length }, () => Math.floor(dice() * 16).toString(16)).join('')
  return `${hex(8)}-${hex(4)}-4${hex(3)}-a${hex(3)}-${hex(12)}`
}

function array(
  { items, minItems, maxItems }: JsonObject,
  source: ValueSource,
  path: string,
  depth: number,
): Json[] {
  const least = Number(minItems ?? 0)
  const length = Math.min(Number(maxItems ?? 3), least + Math.floor(source.dice() * 3))
  return Array.from({ length }, () =>
    isJsonObject(items) ? valueOf(items, source, path, depth + 1) : anyJson(source, depth + 1),
  )
}

function object(schema: JsonObject, source: ValueSource, path: string, depth: number): JsonObject {
  const { properties, required = [], additionalProperties: others } = schema
  const members = optional(schema, source, path, depth)
  for (const name of required as string[]) {
    const its = (properties as Record<string, JsonObject>)[name]!
    members[name] = valueOf(its, source, memberOf(path, name), depth + 1)
  }
  if (properties !== undefined || others === false) return members
  for (let n = Math.floor(source.dice() * 3); n > 0; n--) {
    const name = pick(source.dice, ['customer', 'order id', '__proto__', 'é', 'REGION'])
    const value = isJsonObject(others)
      ? valueOf(others, source, `${path}.*`, depth + 1)
      : anyJson(source, depth + 1)
    Object.defineProperty(members, name, { value, enumerable: true, configurable: true })
  }
  return members
}

/** Some members of `schema` that may be absent. */
function optional(
  { properties = {}, required = [] }: JsonObject,
  source: ValueSource,
  path: string,
  depth: number,
): JsonObject {
  const members: JsonObject = {}
  for (const [name, its] of Object.entries(properties as Record<string, JsonObject>)) {
    if ((required as string[]).includes(name) || source.dice() > 0.3) continue
    members[name] = valueOf(its, source, memberOf(path, name), depth + 1)
  }
  return members
}

/** Puts values that were made earlier into an example. */
function withKnown(example: JsonObject, { known, dice }: ValueSource, path: string): JsonObject {
  const entries = Object.entries(example).map(([name, value]) => {
    const made = typeof value === 'string' ? known(memberOf(path, name)) : undefined
    return [name, made !== undefined && dice() < 0.8 ? made : value] as const
  })
  return Object.fromEntries(entries)
}

function memberOf(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`
}

/** Any JSON, with references to tokens in some of its strings. */
export function anyJson(source: ValueSource, depth = 0): Json {
  const { dice, document } = source
  const drawn = depth > 4 ? dice() * 0.6 : dice()
  if (drawn < 0.05) return null
  if (drawn < 0.1) return dice() < 0.5
  if (drawn < 0.2) return pick(dice, [0, 1, -7, 19.95, 1e21, 2 ** 53 - 1])
  if (drawn < 0.45) return text({ maxLength: 300 }, dice)
  if (drawn < 0.6) {
    const id = source.known('token') ?? uuid(dice)
    return pick(dice, [`{{ ${id} }}`, `{{ token: ${id} }}`, `a {{ ${id} | stringify }}`, '{{ no'])
  }
  if (drawn < 0.7) {
    const request = document.components.schemas['TokenRequest']
    if (request !== undefined) return valueOf(request, source, '', depth + 1)
  }
  const length = Math.floor(dice() * 4)
  if (drawn < 0.85) return Array.from({ length }, () => anyJson(source, depth + 1))
  const names = ['name', 'type', 'data', 'id', '', 'é', '0']
  return Object.fromEntries(
    Array.from({ length }, () => [pick(dice, names), anyJson(source, depth + 1)]),
  )
}

/** Returns `value` with one place in it changed to something that its schema may not allow. */
export function mutated(value: Json, source: ValueSource): Json {
  const { dice } = source
  if (dice() < 0.75 && typeof value === 'object' && value !== null) {
    if (Array.isArray(value)) {
      if (value.length > 0) {
        const at = Math.floor(dice() * value.length)
        return value.map((it, n) => (n === at ? mutated(it, source) : it))
      }
    } else if (Object.keys(value).length > 0) {
      const name = pick(dice, Object.keys(value))
      const { [name]: changed, ...rest } = value
      const drawn = dice()
      if (drawn < 0.2) return rest
      if (drawn < 0.3) return { ...value, [pick(dice, EXTRA_NAMES)]: anyJson(source) }
      return { ...rest, [name]: mutated(changed!, source) }
    }
  }
  return oddValue(value, source)
}

const EXTRA_NAMES = [
  'unknown',
  'encrypted',
  '__proto__',
  'id',
  'settings',
  'runtime',
  'x'.repeat(500),
]

function oddValue(value: Json, source: ValueSource): Json {
  const { dice } = source
  return pick<() => Json>(dice, [
    () => null,
    () => '',
    () => [],
    () => ({}),
    () => true,
    () => pick(dice, [-1, 0, 1.5, 1e308, -(2 ** 31), 2 ** 53 - 1]),
    () => 'x'.repeat(pick(dice, [256, 401, 4_001, 60_000])),
    () => pick(dice, ['\u0000', '\r\n', '😀'.repeat(300), '\ufffe', '{{', '{{ x | no }}', '../..']),
    () => [value],
    () => ({ value }),
    () => Array.from({ length: 150 }, () => value),
    () => anyJson(source),
  ])()
}
