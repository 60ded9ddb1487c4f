/**
 * Headers that are for the proxy itself: what the caller wants of it.
 *
 * Source: interface.md, Proxy, its headers.
 */
import type { Plan } from '../base/access.ts'
import { ServiceError } from '../base/service-error.ts'

export interface ProxyOptions {
  /** Not looked into yet. */
  readonly url: string | undefined
  /** Of a configured proxy, if it is in a header. */
  readonly key: string | undefined
  /** For the headers of the same names of the call to the destination. */
  readonly connection: 'close' | 'keep-alive' | undefined
  readonly keepAlive: string | undefined
  readonly dryRun: boolean
}

/** `headers` are names and values in turn. Throws `header_invalid` and `plan_insufficient`. */
export function parseProxyOptions(headers: readonly string[], plan: Plan): ProxyOptions {
  const sent = new Map<string, string>()
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at]!.toLowerCase()
    if (name.startsWith('bt-proxy-')) sent.set(name, headers[at + 1]!)
  }
  const connection = sent.get('bt-proxy-connection')
  const keepAlive = sent.get('bt-proxy-keep-alive')
  if ((connection !== undefined || keepAlive !== undefined) && plan !== 'enterprise') {
    throw new ServiceError('plan_insufficient')
  }
  return {
    url: sent.get('bt-proxy-url'),
    key: sent.get('bt-proxy-key'),
    connection: connection === undefined ? undefined : parseConnection(connection),
    keepAlive: keepAlive === undefined ? undefined : parseKeepAlive(keepAlive),
    dryRun: parseDryRun(sent.get('bt-proxy-dry-run')),
  }
}

/** No other word: each would name a header that the next server takes away. */
function parseConnection(text: string): 'close' | 'keep-alive' {
  const word = text.toLowerCase()
  if (word === 'close' || word === 'keep-alive') return word
  throw invalid('BT-PROXY-CONNECTION', 'It must be close or keep-alive.')
}

function parseKeepAlive(text: string): string {
  if (KEEP_ALIVE.test(text)) return text
  throw invalid('BT-PROXY-KEEP-ALIVE', 'It must be parameters such as timeout=5, max=100.')
}

function parseDryRun(text: string | undefined): boolean {
  if (text === undefined || text === 'false') return false
  if (text === 'true') return true
  throw invalid('BT-PROXY-DRY-RUN', 'It must be true or false.')
}

/** RFC 2068, section 19.7.1.1: parameters, each a token with a token or a quoted text as its value. */
const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
const PARAMETER = `${TOKEN}(?:=(?:${TOKEN}|"[^"\\\\\\x00-\\x1f\\x7f-\\uffff]*"))?`
const KEEP_ALIVE = new RegExp(`^${PARAMETER}(?:[ \\t]*,[ \\t]*${PARAMETER})*$`)

function invalid(name: string, message: string): ServiceError {
  return new ServiceError('header_invalid', { [name]: [message] })
}
