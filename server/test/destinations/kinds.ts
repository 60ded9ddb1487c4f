/**
 * Destinations that misbehave, each in its own way, and what becomes of a request to it.
 */
import type { Socket } from 'node:net'
import type { TlsOptions } from 'node:tls'
import type { EgressFault } from '../../src/ports/egress.ts'
import { onRequest, type ConnectionHandler, type CertificateName } from '../kit/test-destination.ts'

export interface DestinationKind {
  readonly name: string
  /** Handles a connection; null when no connection is accepted. */
  readonly answer: ConnectionHandler | null
  readonly tls?: TlsOptions & { readonly certificate: CertificateName }
  /** Whether the request is for TLS; as the destination, unless said otherwise. */
  readonly secure?: boolean
  /** How the call ends, and whether a header section is reported before. */
  readonly ends: EgressFault | 'whole'
  readonly headerSection: boolean
  /** By Node's own client, if that sees it otherwise: it has read on before it tells of the end. */
  readonly endsByNode?: EgressFault
  /** Whether a request that follows may meet the connection while it is being closed. */
  readonly closing?: true
  /** Whether its end may come before what it said has been read: that is lost then. */
  readonly abrupt?: true
  /** The caller gives up after the first data, with or without having paused. */
  readonly abandon?: 'reading' | 'paused'
}

const HEADER_SECTION = 'HTTP/1.1 200 OK\r\n'
const WHOLE = `${HEADER_SECTION}Content-Length: 2\r\n\r\nok`
const GOOD = { certificate: 'destination' } as const

export const KINDS: readonly DestinationKind[] = [
  { name: 'refuses', answer: null, ends: 'unreachable', headerSection: false },
  {
    name: 'accepts and is silent',
    answer: (it) => it.resume(),
    ends: 'timeout',
    headerSection: false,
  },
  {
    name: 'accepts and closes',
    answer: (it) => it.resume().end(),
    ends: 'reset',
    headerSection: false,
  },
  {
    name: 'resets when asked',
    answer: onRequest((it) => it.resetAndDestroy()),
    ends: 'reset',
    headerSection: false,
  },
  {
    name: 'resets inside the body',
    answer: onRequest((it) => {
      it.write(`${HEADER_SECTION}Content-Length: 100\r\n\r\nhalf`, () => it.resetAndDestroy())
    }),
    ends: 'reset',
    headerSection: true,
    abrupt: true,
  },
  says('closes inside the body', `${HEADER_SECTION}Content-Length: 100\r\n\r\nhalf`, 'reset', true),
  says(
    'closes inside a chunk',
    `${HEADER_SECTION}Transfer-Encoding: chunked\r\n\r\n9\r\nhalf`,
    'reset',
    true,
  ),
  says('closes inside the header section', `${HEADER_SECTION}Content-Len`, 'reset', false),
  {
    name: 'trickles the header section',
    answer: onRequest((it) => trickle(it, `${HEADER_SECTION}X-Slow: ${'x'.repeat(10_000)}`, 20)),
    ends: 'timeout',
    headerSection: false,
  },
  {
    name: 'trickles the body, and then stops',
    answer: onRequest((it) => {
      it.write(`${HEADER_SECTION}Content-Length: 100\r\n\r\n`)
      trickle(it, 'slow', 20)
    }),
    ends: 'timeout',
    headerSection: true,
  },
  {
    name: 'trickles the body to its end',
    answer: onRequest((it) => {
      it.write(`${HEADER_SECTION}Content-Length: 20\r\n\r\n`)
      trickle(it, 'x'.repeat(20), 10)
    }),
    ends: 'whole',
    headerSection: true,
  },
  says(
    'has a megabyte of headers',
    `${HEADER_SECTION}${'X-Much: abcdefghijklmnop\r\n'.repeat(42_000)}\r\n`,
    'answer-invalid',
    false,
  ),
  says(
    'has one header of a megabyte',
    `${HEADER_SECTION}X-Much: ${'x'.repeat(1 << 20)}\r\n\r\n`,
    'answer-invalid',
    false,
  ),
  keeps(
    'has two lengths',
    `${HEADER_SECTION}Content-Length: 2\r\nContent-Length: 3\r\n\r\nok`,
    'answer-invalid',
    false,
  ),
  keeps(
    'has a length and chunks',
    `${HEADER_SECTION}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`,
    'answer-invalid',
    false,
  ),
  keeps(
    'has chunks and a length',
    `${HEADER_SECTION}Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\nok\r\n0\r\n\r\n`,
    'answer-invalid',
    false,
  ),
  keeps(
    'has a length that is no number',
    `${HEADER_SECTION}Content-Length: 2x\r\n\r\nok`,
    'answer-invalid',
    false,
  ),
  keeps(
    'has a chunk that is no number',
    `${HEADER_SECTION}Transfer-Encoding: chunked\r\n\r\nzz\r\nok`,
    'answer-invalid',
    true,
  ),
  keeps(
    'has a field without a name',
    `${HEADER_SECTION}: nothing\r\n\r\n`,
    'answer-invalid',
    false,
  ),
  keeps(
    'has a field with a space in its name',
    `${HEADER_SECTION}X Y: nothing\r\n\r\n`,
    'answer-invalid',
    false,
  ),
  says('speaks HTTP/0.9', '<html>old</html>', 'answer-invalid', false),
  says('speaks SSH', 'SSH-2.0-OpenSSH_9.2\r\n', 'answer-invalid', false),
  keeps(
    'ends lines with LF alone',
    'HTTP/1.1 200 OK\nContent-Length: 2\n\nok',
    'answer-invalid',
    false,
  ),
  keeps(
    'wants to speak another protocol',
    'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: odd\r\n\r\n',
    'answer-invalid',
    false,
  ),
  keeps(
    'switches to another protocol without a word',
    'HTTP/1.1 101 Switching Protocols\r\nContent-Length: 2\r\n\r\nok',
    'answer-invalid',
    false,
  ),
  keeps(
    'has a status that there is not',
    'HTTP/1.1 099 Odd\r\nContent-Length: 2\r\n\r\nok',
    'answer-invalid',
    false,
  ),
  {
    ...says(
      'says less than there is',
      `${HEADER_SECTION}Content-Length: 2\r\n\r\nok and more`,
      'whole',
      true,
    ),
    endsByNode: 'answer-invalid',
  },
  keeps('answers twice', WHOLE + WHOLE, 'whole', true),
  keeps('answers', WHOLE, 'whole', true),
  { ...says('answers and closes without a word', WHOLE, 'whole', true), closing: true },
  says('ends its body by closing', `${HEADER_SECTION}\r\nok`, 'whole', true),
  keeps(
    'continues unasked',
    `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\nX: y\r\n\r\n${WHOLE}`,
    'whole',
    true,
  ),
  keeps('hints early', `HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${WHOLE}`, 'whole', true),
  {
    name: 'continues for ever',
    answer: onRequest((it) => pour(it, 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(100))),
    ends: 'timeout',
    headerSection: false,
  },
  {
    name: 'hints for ever',
    answer: onRequest((it) => pour(it, 'HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n'.repeat(100))),
    ends: 'timeout',
    headerSection: false,
  },
  {
    name: 'has no end, and the caller goes away',
    answer: onRequest((it) => pour(it, `${HEADER_SECTION}\r\n`, 'x'.repeat(10_000))),
    ends: 'aborted',
    headerSection: true,
    abandon: 'reading',
  },
  {
    name: 'has no end, and the caller pauses and goes away',
    answer: onRequest((it) => pour(it, `${HEADER_SECTION}\r\n`, 'x'.repeat(10_000))),
    ends: 'aborted',
    headerSection: true,
    abandon: 'paused',
  },
  {
    name: 'answers over TLS',
    answer: onRequest((it) => it.write(WHOLE)),
    tls: GOOD,
    ends: 'whole',
    headerSection: true,
  },
  secret('signed its certificate itself', { certificate: 'self-signed' }),
  secret('has a certificate for another name', { certificate: 'other' }),
  secret('has a certificate of the past', { certificate: 'expired' }),
  secret('speaks TLS 1.1', {
    ...GOOD,
    minVersion: 'TLSv1',
    maxVersion: 'TLSv1.1',
    ciphers: 'DEFAULT:@SECLEVEL=0',
  }),
  {
    name: 'speaks no TLS where it should',
    answer: (it) => it.once('data', () => it.end('HTTP/1.1 400 Bad Request\r\n\r\n')),
    secure: true,
    ends: 'tls',
    headerSection: false,
  },
  {
    name: 'resets when it should speak TLS',
    answer: (it) => it.once('data', () => it.resetAndDestroy()),
    secure: true,
    ends: 'tls',
    headerSection: false,
  },
  {
    name: 'is silent when it should speak TLS',
    answer: (it) => it.resume(),
    secure: true,
    ends: 'timeout',
    headerSection: false,
  },
]

/** Says this to each request, and closes. */
function says(
  name: string,
  bytes: string,
  ends: DestinationKind['ends'],
  headerSection: boolean,
): DestinationKind {
  return { name, answer: onRequest((it) => it.end(bytes, 'latin1')), ends, headerSection }
}

/** Says this to each request, and keeps the connection. */
function keeps(
  name: string,
  bytes: string,
  ends: DestinationKind['ends'],
  headerSection: boolean,
): DestinationKind {
  return { name, answer: onRequest((it) => it.write(bytes, 'latin1')), ends, headerSection }
}

function secret(name: string, tls: NonNullable<DestinationKind['tls']>): DestinationKind {
  return {
    name,
    answer: onRequest((it) => it.write(WHOLE)),
    tls,
    ends: 'tls',
    headerSection: false,
  }
}

/** One byte after the other. */
function trickle(socket: Socket, text: string, everyMs: number): void {
  let at = 0
  const timer = setInterval(() => {
    if (at < text.length) socket.write(text[at++]!)
    else clearInterval(timer)
    if (socket.destroyed) clearInterval(timer)
  }, everyMs)
}

/** Writes `first`, then `again` for as long as the client reads. */
function pour(socket: Socket, first: string, again = first): void {
  socket.write(first)
  const more = (): void => {
    while (socket.writable && socket.write(again));
  }
  // By turns, so that others get theirs.
  socket.on('drain', () => setImmediate(more))
  more()
}
