import { EgressFailure, type EgressFault, type EgressHint } from '../../ports/egress.ts'

/**
 * Maps a connection error to the EgressFailure reported to the sender. `inBody`: the header section was already
 * delivered. Returns other errors unchanged: they are bugs of ours.
 */
export function failureOf(error: unknown, inBody: boolean): unknown {
  if (error instanceof EgressFailure || !(error instanceof Error)) return error
  const fault = faultOf(error, 'code' in error ? String(error.code) : '', inBody)
  if (fault === null) return error
  return new EgressFailure(fault, { cause: error, hint: isTlsAlert(error) ? 'tls' : null })
}

/** Returns the hint for a failed TLS handshake. */
export function hintOfHandshake(error: Error): EgressHint | null {
  return 'code' in error && NO_TLS_RECORD.has(String(error.code)) ? 'no-tls' : null
}

const NO_TLS_RECORD: ReadonlySet<string> = new Set([
  'ERR_SSL_WRONG_VERSION_NUMBER',
  'ERR_SSL_PACKET_LENGTH_TOO_LONG',
])

/** Whether a parser of HTTP failed at the first bytes of a TLS alert. Source: RFC 8446, section 5.1. */
function isTlsAlert(error: Error): boolean {
  const { data, rawPacket } = error as { readonly data?: unknown; readonly rawPacket?: unknown }
  const received = rawPacket ?? data
  const text = Buffer.isBuffer(received) ? received.toString('latin1', 0, 2) : received
  return typeof text === 'string' && text.startsWith('\x15\x03')
}

function faultOf({ name, message }: Error, code: string, inBody: boolean): EgressFault | null {
  const known = FAULTS[code]
  if (known !== undefined) return known
  if (code === 'UND_ERR_SOCKET') return message.startsWith('bad ') ? 'answer-invalid' : 'reset'
  // Undici reports this for an unreadable Content-Length and for a body that was cut off.
  if (code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH') return inBody ? 'reset' : 'answer-invalid'
  if (name === 'HTTPParserError') return CUT_OFF.test(message) ? 'reset' : 'answer-invalid'
  if (code.startsWith('HPE_')) return 'answer-invalid'
  // A TLS alert after the handshake: the destination required a client certificate.
  if (code.startsWith('ERR_SSL_') || code.startsWith('ERR_TLS_')) return 'tls'
  if (/^E[A-Z0-9]+$/.test(code)) return 'reset'
  return null
}

const CUT_OFF = /Invalid EOF state/

const FAULTS: Readonly<Record<string, EgressFault>> = {
  // The connection ended inside a response.
  HPE_INVALID_EOF_STATE: 'reset',
  UND_ERR_HEADERS_OVERFLOW: 'answer-invalid',
  UND_ERR_REQ_CONTENT_LENGTH_MISMATCH: 'request',
  UND_ERR_INVALID_ARG: 'request',
  UND_ERR_NOT_SUPPORTED: 'request',
  UND_ERR_DESTROYED: 'aborted',
  UND_ERR_CLOSED: 'aborted',
  UND_ERR_ABORTED: 'aborted',
  ERR_STREAM_PREMATURE_CLOSE: 'reset',
  ERR_HTTP_CONTENT_LENGTH_MISMATCH: 'request',
  ERR_INVALID_CHAR: 'request',
  ERR_INVALID_HTTP_TOKEN: 'request',
  ERR_HTTP_INVALID_HEADER_VALUE: 'request',
  ERR_UNESCAPED_CHARACTERS: 'request',
}
