/** A draft: a requested token that is not created yet, with every member of the request checked and parsed. */
import { EXPIRY_FORM, parseExpiry } from '../base/expiry.ts'
import type { Json, JsonObject } from '../base/json.ts'
import { Sensitive } from '../base/sensitive.ts'
import { ServiceError, type MemberErrors } from '../base/service-error.ts'
import { ExpressionError, within } from '../expressions/expression-error.ts'
import { parseDefaultMask, parseMask, type Mask } from '../expressions/mask.ts'
import { parseTemplate, type Template } from '../expressions/template.ts'
import { parseBy } from '../request/parse.ts'
import { tokenIdFault } from './token-id.ts'
import { findTokenType, TOKEN_TYPES } from './types/registry.ts'
import { DataInvalid, type TokenType } from './types/token-type.ts'
import {
  keptDetails,
  optionMembers,
  privacyContainer,
  refuseEncrypted,
  tokenOptions,
} from './wire.ts'

export interface Draft {
  readonly type: TokenType
  /** As the type stores it, short-lived members included. */
  readonly data: Sensitive<Json>
  readonly options: DraftOptions
  /** Returns the path of a member in the whole payload, for errors. */
  readonly pathOf: PathOf
}

/** Options of a token request beside its data; omitted ones have the type's default. */
export interface DraftOptions {
  /** A literal id, an expression for one, or null for a generated id. */
  readonly id: string | Template | null
  readonly containers: readonly string[]
  readonly mask: Mask | null
  readonly metadata: Readonly<Record<string, string>> | null
  readonly searchIndexes: readonly Template[]
  readonly fingerprint: Template
  /** The scope in which fingerprints are compared: the type, plus the expression if it is not the type's. */
  readonly fingerprintScope: string
  /** Whether the request itself names a fingerprint expression. */
  readonly fingerprintAsked: boolean
  /** Null leaves it to the tenant's settings. */
  readonly deduplicate: boolean | null
  readonly expiresAt: number | null
  /** As sent, to be returned later. */
  readonly details: JsonObject | null
}

/** Returns the path of a token request's member (`data.number`) in the whole payload. */
export type PathOf = (member: string) => string

/**
 * Parses a token request: an object with `type` and `data`.
 *
 * Throws `token_type_unknown`, `token_data_invalid`, `token_invalid` or `expression_invalid`, with the paths of the invalid
 * members as `pathOf` renders them.
 */
export function parseDraft(request: JsonObject, now: number, pathOf: PathOf): Draft {
  refuseEncrypted(request, pathOf)
  const type = parseType(request['type'], pathOf)
  return {
    type,
    data: new Sensitive(parseData(type, request['data'], pathOf)),
    options: parseOptions(type, request, now, pathOf),
    pathOf,
  }
}

/** Returns the draft of a plain value: a generic token without options. */
export function draftOfValue(value: string | number | boolean): Draft {
  const type = findTokenType('token')!
  return { type, data: new Sensitive<Json>(value), options: defaultOptions(type), pathOf: itself }
}

function itself(member: string): string {
  return member
}

/** Null counts as absent, as for every member: clients that send whole objects include nulls. */
function parseType(sent: Json | undefined, pathOf: PathOf): TokenType {
  const name = sent ?? 'token'
  const type = typeof name === 'string' ? findTokenType(name) : undefined
  if (type !== undefined) return type
  const names = TOKEN_TYPES.map((it) => it.name).join(', ')
  throw new ServiceError('token_type_unknown', { [pathOf('type')]: [`Must be one of ${names}.`] })
}

function parseData(type: TokenType, data: Json | undefined, pathOf: PathOf): Json {
  if (data === undefined || data === null) {
    throw new ServiceError('token_data_invalid', { [pathOf('data')]: ['Data is required.'] })
  }
  try {
    return type.parse(data)
  } catch (error) {
    if (!(error instanceof DataInvalid)) throw error
    const errors: Record<string, string[]> = {}
    for (const [member, message] of Object.entries(error.members)) {
      errors[pathOf(member === '' ? 'data' : `data.${member}`)] = [message]
    }
    throw new ServiceError('token_data_invalid', errors)
  }
}

const DEFAULTS = new Map<string, DraftOptions>()

/** Returns the options of a request without any; the same object every time. */
function defaultOptions(type: TokenType): DraftOptions {
  const known = DEFAULTS.get(type.name)
  if (known !== undefined) return known
  const options: DraftOptions = {
    id: null,
    containers: [type.container],
    mask: type.mask === null ? null : parseDefaultMask(type.mask),
    metadata: null,
    searchIndexes: type.searchIndexes.map((it) => parseTemplate(it)),
    fingerprint: parseTemplate(type.fingerprintExpression),
    fingerprintScope: type.name,
    fingerprintAsked: false,
    deduplicate: null,
    expiresAt: null,
    details: null,
  }
  DEFAULTS.set(type.name, options)
  return options
}

function parseOptions(
  type: TokenType,
  request: JsonObject,
  now: number,
  pathOf: PathOf,
): DraftOptions {
  const defaults = defaultOptions(type)
  const members = optionMembers(request)
  if (members === null) return defaults
  const sent = parseBy(
    tokenOptions,
    members,
    (errors) => new ServiceError('token_invalid', at(errors, pathOf)),
  )

  const expiry = sent.expires_at === undefined ? null : parseExpiry(sent.expires_at)
  if (sent.expires_at !== undefined && (expiry === null || expiry.at <= now)) {
    const message = expiry === null ? `Must be ${EXPIRY_FORM}.` : 'Must lie in the future.'
    throw new ServiceError('token_invalid', { [pathOf('expires_at')]: [message] })
  }
  const container = privacyContainer(sent, type.name)
  return {
    id: sent.id === undefined ? null : parseId(sent.id, pathOf),
    containers:
      sent.containers === undefined
        ? container === null
          ? defaults.containers
          : [container]
        : [...new Set(sent.containers)],
    mask:
      sent.mask === undefined
        ? defaults.mask
        : parseExpression(() => parseMask(sent.mask as Json), 'mask', pathOf),
    metadata: sent.metadata ?? null,
    searchIndexes:
      sent.search_indexes === undefined
        ? defaults.searchIndexes
        : sent.search_indexes.map((it, index) =>
            parseExpression(() => parseTemplate(it), `search_indexes[${index}]`, pathOf),
          ),
    fingerprint:
      sent.fingerprint_expression === undefined
        ? defaults.fingerprint
        : parseExpression(
            () => parseTemplate(sent.fingerprint_expression!),
            'fingerprint_expression',
            pathOf,
          ),
    fingerprintScope: fingerprintScopeOf(type, sent.fingerprint_expression),
    fingerprintAsked: sent.fingerprint_expression !== undefined,
    deduplicate: sent.deduplicate_token ?? null,
    expiresAt: expiry?.at ?? null,
    details: keptDetails(sent, expiry?.text ?? null),
  }
}

/**
 * The author of an expression controls its result. A custom expression must therefore not match the fingerprints of the
 * type's own expression: otherwise a caller who knows only a card's number could create a token that passes as that card's
 * duplicate. Whitespace differences do not make an expression custom. Decision 0015.
 */
function fingerprintScopeOf(type: TokenType, expression: string | undefined): string {
  const bare = (text: string): string => text.replaceAll(/\s+/g, '')
  if (expression === undefined || bare(expression) === bare(type.fingerprintExpression)) {
    return type.name
  }
  return `${type.name} ${expression}`
}

function parseId(id: string, pathOf: PathOf): string | Template {
  if (id.includes('{{')) return parseExpression(() => parseTemplate(id), 'id', pathOf)
  const fault = tokenIdFault(id)
  if (fault === null) return id
  throw new ServiceError('token_invalid', { [pathOf('id')]: [fault] })
}

function parseExpression<Parsed>(parse: () => Parsed, member: string, pathOf: PathOf): Parsed {
  try {
    return parse()
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error
    const path = pathOf(within(member, error.member))
    throw new ServiceError('expression_invalid', { [path]: [error.message] })
  }
}

function at(errors: MemberErrors, pathOf: PathOf): MemberErrors {
  return Object.fromEntries(Object.entries(errors).map(([path, texts]) => [pathOf(path), texts]))
}
