import type { IncomingMessage } from 'node:http'
import { BytePile } from '../base/byte-pile.ts'
import { BODY_BYTES_MAX, LARGE_BYTES_MIN } from '../base/limits.ts'
import { ServiceError } from '../base/service-error.ts'

/**
 * Returns the body of a request when all of it is there; empty when there is none.
 *
 * Mostly it came in the packet that the headers came in, and then it is taken as it lies. Of one that is long no more is
 * read until memory is reserved for it. Throws, or rejects with, `body_too_large`, `body_invalid` for one that breaks off, and
 * what `reserveBody` does.
 */
export function wholeBody(
  message: IncomingMessage,
  reserveBody: ReserveBody,
): Buffer | Promise<Buffer> {
  if (Number(message.headers['content-length'] ?? 0) > BODY_BYTES_MAX) throw tooLarge()
  if (!message.complete) return gather(message, reserveBody)
  const bytes = (message.read() as Buffer | null) ?? EMPTY
  if (bytes.length > BODY_BYTES_MAX) throw tooLarge()
  return bytes
}

/** In a pile: kept each by itself, a chunk takes hundreds of bytes, and 5 MiB of chunks of one byte gigabytes. */
function gather(message: IncomingMessage, reserveBody: ReserveBody): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  let pile = new BytePile()
  let counted = false
  message.on('data', take)
  message.on('end', () => resolve(pile.whole()))
  message.on('error', (cause) => reject(brokenOff(cause)))
  message.on('close', () => reject(brokenOff(undefined)))
  return promise

  function take(chunk: Buffer): void {
    if (pile.length + chunk.length <= BODY_BYTES_MAX) {
      pile.add(chunk)
      if (!counted && pile.length >= LARGE_BYTES_MIN) wait()
      return
    }
    refuse(tooLarge())
  }

  function wait(): void {
    counted = true
    const length = message.headers['content-length']
    const waiting = reserveBody(length === undefined ? null : Number(length))
    if (waiting === undefined) return
    message.pause()
    waiting.then(() => message.resume(), refuse)
  }

  /** What follows is thrown away, as the answer goes out. */
  function refuse(refusal: unknown): void {
    message.off('data', take)
    pile = new BytePile()
    reject(refusal)
  }
}

/** Resolves when memory is reserved for a body of so many bytes, null for nobody knows; undefined when it was at once. */
export type ReserveBody = (length: number | null) => Promise<void> | undefined

function tooLarge(): ServiceError {
  return new ServiceError('body_too_large')
}

/** What is said of a request whose client is gone before it was all there. */
export function brokenOff(cause: unknown): ServiceError {
  const errors = { error: ['The request is not well-formed.'] }
  return new ServiceError('body_invalid', errors, { cause })
}

const EMPTY = Buffer.alloc(0)
