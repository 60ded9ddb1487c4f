import { EgressFailure, type OutboundStream } from '../../ports/egress.ts'

/**
 * Yields the chunks of `stream` and verifies their declared length; pulls no more than needed. Throws EgressFailure
 * (`request`) when the stream fails, is too long, or ends early. Calls `onSent` when the next chunk is requested, which
 * means that the previous one was sent.
 */
export async function* measured(
  { length, chunks }: OutboundStream,
  onSent: () => void,
): AsyncGenerator<Uint8Array> {
  let sent = 0
  try {
    for await (const chunk of chunks) {
      sent += chunk.byteLength
      if (length !== null && sent > length) throw new Error('The body is longer than it said')
      yield chunk
      onSent()
    }
    if (length !== null && sent < length) throw new Error('The body is shorter than it said')
  } catch (cause) {
    throw new EgressFailure('request', { cause })
  }
}
