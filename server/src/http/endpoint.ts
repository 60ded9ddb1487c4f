import type { z } from 'zod'
import type { ApplicationType, RequestContext, Permission } from '../base/access.ts'
import type { Json } from '../base/json.ts'
import type { World } from '../ports/world.ts'

/**
 * One operation of the service, as data.
 *
 * What is true of an operation is a field here; the code that makes it true (identity, sizes, parsing,
 * rendering of errors) is in http/, once.
 */
export interface Operation {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** With `:name` for a path parameter. A trailing slash is accepted on every path. */
  readonly path: string
  /** A few words for the table of contents of the OpenAPI document. */
  readonly summary: string
  /**
   * What the caller's key must hold somewhere: the coarse question, asked once the body is known to be
   * JSON and before anybody asks what is in it.
   * `any-key` takes every valid key, `public` asks for none.
   */
  readonly permission: Permission | 'any-key' | 'public'
  /** Answers 403 to keys of any other type, sessions included. */
  readonly applicationType?: ApplicationType
  /** Answers 403 to tenants on the standard plan. */
  readonly plan?: 'enterprise'
  /** By status, for the OpenAPI document; errors are the same everywhere and need no mention. */
  readonly answers: Readonly<Record<number, AnswerSpec>>
}

/** One that reads a body whole and answers in JSON: `handle` gets a request that passed all of it. */
export interface Endpoint extends Operation {
  /** Ignores idempotency keys: it changes nothing, or what it answers is told once. */
  readonly idempotent?: false
  /** May be part of a transaction: elsewhere the header that names one means nothing. */
  readonly transactional?: true
  /** What it may find that can be long: of those that may find much few are run at a time for a tenant. */
  readonly readCost?: 'single' | 'list'
  /** What its path names may have been chosen by a caller, letter by letter; else it is uuids, whatever their case. */
  readonly callerChosenIds?: true
  /** What the body must be; without it a body is ignored. */
  readonly body?: BodySpec
  readonly query?: z.ZodType
  readonly handle: (request: EndpointRequest) => Promise<Answer>
}

export interface BodySpec {
  readonly contentType: 'application/json' | 'application/merge-patch+json'
  /** Shown in the OpenAPI document. The use case parses the body, after it has found what it is about. */
  readonly schema: z.ZodType
  /** Whether an absent body reaches the use case as undefined; otherwise it is refused. */
  readonly optional?: true
}

export interface AnswerSpec {
  readonly description: string
  readonly schema?: z.ZodType
}

export interface EndpointRequest {
  readonly world: World
  readonly context: RequestContext
  /** Path parameters, decoded; in lower case, unless the endpoint has caller-chosen ids. */
  readonly params: Readonly<Record<string, string>>
  readonly query: QueryParameters
  /** Undefined when there was none. */
  readonly body: Json | undefined
  /** The BT-TRANSACTION-ID header, where the endpoint is transactional. */
  readonly transactionId: string | undefined
}

/** Query parameters as sent: a name given twice has several values. */
export type QueryParameters = ReadonlyMap<string, readonly string[]>

/** What goes back: `body` as JSON, or nothing at all (content length 0). */
export interface Answer {
  readonly status: number
  readonly body?: Json
  /** In place of `body`: sent as it is, of the content type that `headers` say, else JSON. */
  readonly text?: string
  /** The same of what is sent often, so that it is encoded once. */
  readonly bytes?: Buffer
  /** Path of what was created, for the Location header. */
  readonly location?: string
  /** More headers, by their names in lower case. */
  readonly headers?: Readonly<Record<string, string>>
}

export function ok(body: Json): Answer {
  return { status: 200, body }
}

export function created(body: Json, location: string): Answer {
  return { status: 201, body, location }
}

export function noContent(): Answer {
  return { status: 204 }
}

/** Whether an idempotency key means anything to it. */
export function acceptsIdempotencyKeys({ method, idempotent }: Endpoint): boolean {
  return method !== 'GET' && method !== 'DELETE' && idempotent !== false
}

/** Names an endpoint's type, so that its record is checked where it is written. */
export function endpoint(record: Endpoint): Endpoint {
  return record
}
