import { acceptedFrom, type AcceptedCodings } from './content-coding.ts'
import { endsHere, fold } from './hop-headers.ts'
import type { ProxyOptions } from './reserved-headers.ts'

export interface OutboundHeaders {
  /** Names and values in turn. */
  readonly headers: readonly string[]
  /** What the caller takes of the codings that the destination is told of. */
  readonly accepted: AcceptedCodings
}

/**
 * Returns the headers for the destination: the caller's, in their order and with their names as they were
 * sent, but for those that
 *
 * - end here: hop by hop, or named by `Connection`;
 * - are made anew: Host, Content-Length, Expect, Accept-Encoding;
 * - are for this service: everything that begins with `BT-`, the key above all;
 * - label the body under another name than we read, `Content_Type` for one: what is put into it is made safe for
 *   one reader, and there must not be another;
 * - have a name that is more than letters, digits, `-` and `_`.
 *
 * The trace id goes along, and so do the two headers that the caller asked for on the call itself.
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
