import type { Json } from '../base/json.ts'

/** A response as a value: `body` as JSON, or an empty body (content length 0). */
export interface Answer {
  readonly status: number
  readonly body?: Json
  /** Replaces `body`: sent as it is, with the content type in `headers`, by default JSON. */
  readonly text?: string
  /** Like `text`, for binary content, or for text that is sent often and encoded once. */
  readonly bytes?: Buffer
  /** `bytes` as gzip, which clients that accept it get. */
  readonly gzipped?: Buffer
  /** Path of the created resource, for the Location header. */
  readonly location?: string
  /** Additional headers, by lower-case name; an array is sent as one header per element. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
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
