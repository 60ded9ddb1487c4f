import type { Transform } from 'node:stream'
import type { StreamingReply } from '../request/streaming.ts'
import {
  EgressFailure,
  type Egress,
  type OutboundCall,
  type OutboundRequest,
  type Route,
} from '../ports/egress.ts'
import { answerHeaderSection } from './answer-headers.ts'
import { decoderFor, type AcceptedCodings } from './content-coding.ts'

/**
 * Sends `request` and streams the response into `reply`, no faster than the client reads it.
 *
 * Resolves once the response is written. Rejects with EgressFailure, even after the response has begun; aborts the call if
 * the client disconnects.
 */
export async function exchange(
  egress: Pick<Egress, 'send'>,
  route: Route,
  request: OutboundRequest,
  reply: StreamingReply,
  { accepted, unread }: { readonly accepted: AcceptedCodings; readonly unread: boolean },
): Promise<void> {
  let decode: string | null = null
  let decoder = null as Transform | null
  let fault: unknown
  /** Pending while a response is being decoded, which continues after its last byte has arrived. */
  let decoded = null as PromiseWithResolvers<void> | null

  const call: OutboundCall = egress.send(route, request, {
    headerSection(status, reason, headers) {
      guarded(() => {
        const headerSection = answerHeaderSection(status, reason, headers, { accepted, unread })
        decode = headerSection.decode
        reply.begin(status, headerSection.reason, headerSection.headers)
      })
    },
    data(chunk) {
      if (decode === null) return reply.data(chunk)
      decoder ??= decoding(decode, chunk)
      return decoder.write(chunk)
    },
    end() {
      if (decoder === null) reply.end()
      else decoder.end()
    },
  })
  reply.onDrain(() => (decoder === null ? call.resume() : decoder.resume()))
  // Also while a response that has arrived completely waits for the client to read it.
  reply.onGone(() => fail(new EgressFailure('aborted')))
  try {
    await call.done
  } catch (error) {
    decoder?.destroy()
    throw fault ?? error
  }
  if (decoded !== null) await decoded.promise

  function decoding(coding: string, first: Uint8Array): Transform {
    const made = decoderFor(coding, first)!
    const { resolve } = (decoded = Promise.withResolvers())
    made.on('data', (chunk: Uint8Array) => {
      if (!reply.data(chunk)) made.pause()
    })
    made.on('drain', () => call.resume())
    made.on('end', () => {
      reply.end()
      resolve()
    })
    made.on('error', (cause) => fail(new EgressFailure('answer-invalid', { cause })))
    return made
  }

  function guarded(work: () => void): void {
    try {
      work()
    } catch (error) {
      fail(error)
    }
  }

  function fail(error: unknown): void {
    fault ??= error
    decoded?.reject(error)
    // The failure is reported by the call or by the write; this only prevents an unhandled rejection.
    decoded?.promise.catch(() => {})
    call.abort()
  }
}
