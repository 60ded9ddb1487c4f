import type { IncomingMessage } from 'node:http'
import { BytePile } from '../base/byte-pile.ts'
import { BODY_BYTES_MAX } from '../base/limits.ts'
import { ServiceError } from '../base/service-error.ts'

/**
 * Returns the body of a request when all of it is there; empty when there is none.
 *
 * Mostly it came in the packet that the headers came in, and then it is taken as it lies. Throws, or rejects
 * with, `body_too_large` and `body_invalid`, the latter for one that breaks off.
 */
export function wholeBody(message: IncomingMessage): Buffer | Promise<Buffer> {
  if (Number(message.headers['content-length'] ?? 0) > BODY_BYTES_MAX) throw tooLarge()
  if (!message.complete) return gather(message)
  const bytes = (message.read() as Buffer | null) ?? EMPTY
  if (bytes.length > BODY_BYTES_MAX) throw tooLarge()
  return bytes
}

/** In a pile: kept each by itself, a chunk takes hundreds of bytes, and 5 MiB of chunks of one byte gigabytes. */
function gather(message: IncomingMessage): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const pile = new BytePile()
  message.on('data', take)
  message.on('end', () => resolve(pile.whole()))
  message.on('error', (cause) => reject(brokenOff(cause)))
  message.on('close', () => reject(brokenOff(undefined)))
  return promise

  function take(chunk: Buffer): void {
    if (pile.length + chunk.length <= BODY_BYTES_MAX) {
      pile.add(chunk)
      return
    }
    // What follows is thrown away, as the answer goes out.
    message.off('data', take)
    reject(tooLarge())
  }
}

function tooLarge(): ServiceError {
  return new ServiceError('body_too_large')
}

function brokenOff(cause: unknown): ServiceError {
  const errors = { error: ['The request is not well-formed.'] }
  return new ServiceError('body_invalid', errors, { cause })
}

const EMPTY = Buffer.alloc(0)
