import { acceptedFrom, type AcceptedCodings } from './content-coding.ts'
import { endsHere, fold } from './hop-headers.ts'
import type { ProxyOptions } from './reserved-headers.ts'

export interface OutboundHeaders {
  /** Names and values, alternating. */
  readonly headers: readonly string[]
  /** The codings offered to the destination that the caller accepts. */
  readonly accepted: AcceptedCodings
}

/**
 * Returns the headers for the destination: the caller's, with their order and spelling, except for those that
 *
 * - end at this hop: hop-by-hop headers, and those named by `Connection`;
 * - are set anew: Host, Content-Length, Expect, Accept-Encoding;
 * - are meant for this service: everything that begins with `BT-`, above all the key;
 * - label the body under another name than the one read here, `Content_Type` for example: inserted values are made safe
 * for one reader, and there must not be a second;
 * - have a name with characters other than letters, digits, `-` and `_`.
 *
 * Adds the trace id, and the two headers that the caller requested for the outbound call.
 *
 * Source: interface.md, Proxy, its headers.
 */
export function outboundHeaders(
  sent: readonly string[],
  { connection, keepAlive }: Pick<ProxyOptions, 'connection' | 'keepAlive'>,
  traceId: string,
): OutboundHeaders {
  const ends = endsHere(sent)
  const accepted = acceptedFrom(sent)
  const headers: string[] = []
  for (let at = 0; at < sent.length; at += 2) {
    const name = sent[at]!
    if (!PASSING_NAME.test(name)) continue
    const folded = fold(name)
    if (ends(folded) || MADE_ANEW.has(folded) || folded.startsWith('bt-')) continue
    if (LABELS.has(folded) && name.includes('_')) continue
    headers.push(name, sent[at + 1]!)
  }
  headers.push('Accept-Encoding', accepted.asked, 'BT-TRACE-ID', traceId)
  if (connection !== undefined) headers.push('Connection', connection)
  if (keepAlive !== undefined) headers.push('Keep-Alive', keepAlive)
  return { headers, accepted }
}

const PASSING_NAME = /^[A-Za-z0-9_-]+$/

const MADE_ANEW = new Set(['host', 'content-length', 'expect', 'accept-encoding'])
const LABELS = new Set(['content-type', 'content-encoding'])
