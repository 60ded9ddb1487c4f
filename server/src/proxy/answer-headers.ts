import { isReadable, type AcceptedCodings } from './content-coding.ts'
import { endsHere, fold } from './hop-headers.ts'

export interface AnswerHeaderSection {
  readonly reason: string
  /** Names and values in turn. */
  readonly headers: readonly string[]
  /** The coding that the body has to be freed from on its way; null for as it is. */
  readonly decode: string | null
}

/**
 * Returns the header section of the destination's answer for the caller: as it came, but for headers that
 *
 * - end here: hop by hop, or named by `Connection`;
 * - speak for this service: its trace id, what browsers may do with its answers, and the headers by which
 *   callers tell whose the answer is and whether the request may have held expressions that were not read;
 * - are no longer true, when the body is decoded on its way.
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
  // What a status line cannot carry; the status says the same.
  return { reason: /^[\t\x20-\x7e\x80-\xff]*$/.test(reason) ? reason : '', headers, decode }
}

const OWN = new Set(['bt-proxy-destination-status', 'bt-proxy-expressions', 'bt-trace-id'])

const UNTRUE_WHEN_DECODED = new Set([
  'content-encoding',
  'content-length',
  'accept-ranges',
  // Digests are of what came. RFC 9530, and older ones.
  'content-digest',
  'repr-digest',
  'digest',
  'content-md5',
])

function isEmpty(status: number): boolean {
  return status === 204 || status === 304
}

/** The one coding that a body has, when the caller does not take it and it can be read here. */
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
