import { isReadable, type AcceptedCodings } from './content-coding.ts'
import { endsHere, fold } from './hop-headers.ts'

export interface AnswerHeaderSection {
  readonly reason: string
  /** Names and values, alternating. */
  readonly headers: readonly string[]
  /** The content coding to remove from the body while forwarding it; null to leave it unchanged. */
  readonly decode: string | null
}

/**
 * Returns the header section of the destination's response for the caller: unchanged, except for headers that
 *
 * - end at this hop: hop-by-hop headers, and those named by `Connection`;
 * - belong to this service: its trace id, browser policies for its answers, and the headers that tell callers whose answer
 * it is and whether the request may have held expressions that were not inspected;
 * - become false when the body is decoded on its way.
 */
export function answerHeaderSection(
  status: number,
  reason: string,
  came: readonly string[],
  { accepted, unread }: { readonly accepted: AcceptedCodings; readonly unread: boolean },
): AnswerHeaderSection {
  const decode = status === 206 || isEmpty(status) ? null : codingToRead(came, accepted)
  const ends = endsHere(came)
  const headers: string[] = []
  for (let at = 0; at < came.length; at += 2) {
    const name = came[at]!
    const folded = fold(name)
    if (ends(folded) || OWN.has(folded) || folded.startsWith('access-control-')) continue
    if (decode !== null && UNTRUE_WHEN_DECODED.has(folded)) continue
    if (folded === 'content-length' && (status === 204 || !/^\d+$/.test(came[at + 1]!))) continue
    headers.push(name, came[at + 1]!)
  }
  headers.push('BT-PROXY-DESTINATION-STATUS', String(status))
  if (unread) headers.push('BT-PROXY-EXPRESSIONS', 'unread')
  // Drops a reason phrase that a status line cannot carry; the status code says the same.
  return { reason: /^[\t\x20-\x7e\x80-\xff]*$/.test(reason) ? reason : '', headers, decode }
}

const OWN = new Set(['bt-proxy-destination-status', 'bt-proxy-expressions', 'bt-trace-id'])

const UNTRUE_WHEN_DECODED = new Set([
  'content-encoding',
  'content-length',
  'accept-ranges',
  // Digests cover the encoded bytes: RFC 9530, and its predecessors.
  'content-digest',
  'repr-digest',
  'digest',
  'content-md5',
])

function isEmpty(status: number): boolean {
  return status === 204 || status === 304
}

/** Returns the body's single coding if the caller does not accept it and this service can decode it. */
function codingToRead(came: readonly string[], accepted: AcceptedCodings): string | null {
  const codings: string[] = []
  for (let at = 0; at < came.length; at += 2) {
    if (came[at]!.toLowerCase() === 'content-encoding') codings.push(...came[at + 1]!.split(','))
  }
  const [coding, ...more] = codings
    .map((it) => it.trim().toLowerCase())
    .filter((it) => it !== '' && it !== 'identity')
  if (coding === undefined || more.length > 0) return null
  return accepted.takes(coding) || !isReadable(coding) ? null : coding
}
