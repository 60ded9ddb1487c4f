import type { IncomingHttpHeaders } from 'node:http'
import type { z } from 'zod'
import type { ApplicationType, Decision, Permission } from '../base/access.ts'
import type { RequestContext } from '../request/context.ts'
import type { Json } from '../base/json.ts'
import type { RefusalCode } from '../base/service-error.ts'
import type { QueryParameters } from '../request/query.ts'
import type { Answer } from '../request/response.ts'
import type { World } from '../ports/world.ts'

/**
 * One operation of the service, as data.
 *
 * Each property of an operation is a field here; the code that enforces it (identity, sizes, parsing, rendering of errors) is in
 * http/, once.
 */
export interface Operation {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** `:name` marks a path parameter. A trailing slash is accepted on every path. */
  readonly path: string
  /** A few words for the table of contents of the OpenAPI document. */
  readonly summary: string
  /**
   * Permission the caller's key must hold on at least one container: the coarse check, made once the body is known to be JSON and
   * before its content is examined. `any-key` accepts every valid key, `public` requires none.
   */
  readonly permission: Permission | 'any-key' | 'public'
  /** How the audit log names a denial, if the permission's name does not say what was asked for. */
  readonly about?: Decision['about']
  /** Answers 403 to keys of any other type, sessions included. */
  readonly applicationType?: ApplicationType
  /** Answers 403 to tenants on the standard plan. */
  readonly plan?: 'enterprise'
  /** By status, for the OpenAPI document. `default` is content that is forwarded, of any status. */
  readonly answers: Readonly<Record<number, AnswerSpec>> & { readonly default?: AnswerSpec }
  /** Refusals of the use case, for the OpenAPI document. Those of the pipeline follow from the other fields. */
  readonly refusals?: readonly RefusalCode[]
}

/** An operation that reads a body whole and answers in JSON; `handle` gets a request that passed all checks. */
export interface Endpoint extends Operation {
  /** Changes nothing, although its method is not GET. */
  readonly readOnly?: true
  /** Ignores idempotency keys: its answer is shown only once. */
  readonly idempotent?: false
  /** May be part of a transaction; other endpoints ignore the header that names one. */
  readonly transactional?: true
  /** How much it may read: for each tenant only a few operations that may read much run at a time. */
  readonly readCost?: 'single' | 'list'
  /** Its path parameters may hold ids chosen by a caller, which are case-sensitive; otherwise they are UUIDs in any case. */
  readonly callerChosenIds?: true
  /** Spec of the body; without it a body is ignored. */
  readonly body?: BodySpec
  readonly query?: z.ZodType
  readonly handle: (request: EndpointRequest) => Promise<Answer>
}

export interface BodySpec {
  readonly contentType: 'application/json' | 'application/merge-patch+json'
  /** Shown in the OpenAPI document. The use case parses the body, after it has looked up the resource. */
  readonly schema: z.ZodType
  /** Whether an absent body reaches the use case as undefined; otherwise it is refused. */
  readonly optional?: true
}

export interface AnswerSpec {
  readonly description: string
  /** Without it the answer has no body, unless it has another content type. */
  readonly schema?: z.ZodType
  /** Of a body that is not JSON. */
  readonly contentType?: TextType | readonly TextType[]
  /** Whether any other body may come as well, which the service did not write: a destination's, or that of a reactor's code. */
  readonly foreign?: true
  /** Codes of the errors among them. */
  readonly codes?: readonly RefusalCode[]
  /** Its own headers, beside those of every answer. */
  readonly headers?: readonly AnswerHeader[]
}

type TextType = 'text/css' | 'text/html' | 'text/javascript' | 'text/plain'

/** Headers of some answers, by their names in the OpenAPI document. */
export type AnswerHeader =
  | 'cacheControl'
  | 'contentEncoding'
  | 'crossOriginEmbedderPolicy'
  | 'crossOriginResourcePolicy'
  | 'location'
  | 'permissionsPolicy'
  | 'referrerPolicy'
  | 'sharedOrigin'
  | 'vary'
  | 'reactorRequestId'
  | 'contentSecurityPolicy'
  | 'contentTypeOptions'
  | 'proxyDestinationStatus'
  | 'proxyExpressions'

export interface EndpointRequest {
  readonly world: World
  readonly context: RequestContext
  /** Path parameters, decoded; in lower case unless the endpoint has caller-chosen ids. */
  readonly params: Readonly<Record<string, string>>
  readonly query: QueryParameters
  /** Undefined if the request had none. */
  readonly body: Json | undefined
  /** The BT-TRANSACTION-ID header, if the endpoint is transactional. */
  readonly transactionId: string | undefined
}

/** Returns the methods that reach an endpoint: HEAD does where GET does, with the same rights and the same headers. */
export function methodsOf({ method }: Endpoint): (Operation['method'] | 'HEAD')[] {
  return method === 'GET' ? ['GET', 'HEAD'] : [method]
}

/** Whether the endpoint changes nothing: repeating a request is harmless, and a failed one has no unknown outcome. */
export function isReadOnly({ method, readOnly }: Endpoint): boolean {
  return method === 'GET' || readOnly === true
}

/** Whether the endpoint honours idempotency keys. */
export function acceptsIdempotencyKeys(endpoint: Endpoint): boolean {
  return !isReadOnly(endpoint) && endpoint.method !== 'DELETE' && endpoint.idempotent !== false
}

/** Returns the transaction that a request names, if its endpoint can be part of one. */
export function transactionIdOf(
  { transactional }: Endpoint,
  headers: IncomingHttpHeaders,
): string | undefined {
  return transactional === true ? (headers['bt-transaction-id'] as string | undefined) : undefined
}

/** Types an endpoint record, so that it is checked where it is written. */
export function endpoint(record: Endpoint): Endpoint {
  return record
}
