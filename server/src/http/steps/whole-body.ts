import type { IncomingMessage } from 'node:http'
import { BytePile } from '../../base/byte-pile.ts'
import { isStranger, type Principal } from '../../base/access.ts'
import { BODY_BYTES_MAX, LARGE_BYTES_MIN } from '../../base/limits.ts'
import { ServiceError } from '../../base/service-error.ts'

/**
 * Returns the whole body of a request from `principal`, null for a caller without a key; empty when there is none.
 *
 * Usually it came in the packet of the headers, and is taken as it is. The rest of a long body is read only after memory is
 * reserved for it. Throws, or rejects with, `body_too_large` or `public_body_too_large`, `body_invalid` for an aborted body, and
 * the errors of `reserveBody`.
 */
export function wholeBody(
  message: IncomingMessage,
  principal: Pick<Principal, 'type' | 'grantorId' | 'settings'> | null,
  reserveBody: ReserveBody,
): Buffer | Promise<Buffer> {
  const limit = principal !== null && isStranger(principal) ? publicLimit(principal) : LIMIT
  if (Number(message.headers['content-length'] ?? 0) > limit.bytes) throw tooLarge(limit)
  if (!message.complete) return gather(message, limit, reserveBody)
  const bytes = (message.read() as Buffer | null) ?? EMPTY
  if (bytes.length > limit.bytes) throw tooLarge(limit)
  return bytes
}

interface RequestBodyLimit {
  readonly bytes: number
  readonly code: 'body_too_large' | 'public_body_too_large'
}

const LIMIT: RequestBodyLimit = { bytes: BODY_BYTES_MAX, code: 'body_too_large' }

/** Strangers hold a public key, open sessions with it, and parsing a long body holds up everyone else. Decision 0086. */
function publicLimit({ settings }: Pick<Principal, 'settings'>): RequestBodyLimit {
  return { bytes: settings.publicBodyBytesMax, code: 'public_body_too_large' }
}

/** Copied into one buffer: kept separately, a chunk takes hundreds of bytes, and 5 MiB of one-byte chunks gigabytes. */
function gather(
  message: IncomingMessage,
  limit: RequestBodyLimit,
  reserveBody: ReserveBody,
): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  let pile = new BytePile()
  let counted = false
  message.on('data', take)
  message.on('end', () => resolve(pile.whole()))
  message.on('error', (cause) => reject(brokenOff(cause)))
  message.on('close', () => reject(brokenOff(undefined)))
  return promise

  function take(chunk: Buffer): void {
    if (pile.length + chunk.length <= limit.bytes) {
      pile.add(chunk)
      if (!counted && pile.length >= LARGE_BYTES_MIN) wait()
      return
    }
    refuse(tooLarge(limit))
  }

  function wait(): void {
    counted = true
    const length = message.headers['content-length']
    const waiting = reserveBody(length === undefined ? limit.bytes : Number(length))
    if (waiting === undefined) return
    message.pause()
    waiting.then(() => message.resume(), refuse)
  }

  /** Discards the rest while the answer goes out. */
  function refuse(refusal: unknown): void {
    message.off('data', take)
    pile = new BytePile()
    reject(refusal)
  }
}

/** Reserves memory for a body of `bytes` at most. Resolves when reserved; returns undefined if reserved at once. */
export type ReserveBody = (bytes: number) => Promise<void> | undefined

function tooLarge({ code }: RequestBodyLimit): ServiceError {
  return new ServiceError(code)
}

/** Returns the refusal for a request whose client left before it was complete. */
export function brokenOff(cause: unknown): ServiceError {
  const errors = { error: ['The request is not well-formed.'] }
  return new ServiceError('body_invalid', errors, { cause })
}

const EMPTY = Buffer.alloc(0)
