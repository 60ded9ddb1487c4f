import { EgressFailure, type OutboundStream } from '../../ports/egress.ts'

/**
 * The chunks of `stream`, as many bytes as it said; what is not needed any more is not drawn from it. Throws
 * EgressFailure (`request`) when the stream fails, is longer, or ends before. `onSent` is called when more is asked for,
 * that is when the last chunk has gone out.
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
