/**
 * Headers addressed to the proxy itself: the caller's proxy options.
 *
 * Source: interface.md, Proxy, its headers.
 */
import type { Plan } from '../base/access.ts'
import { ServiceError } from '../base/service-error.ts'

export interface ProxyOptions {
  /** Not validated yet. */
  readonly url: string | undefined
  /** The key of a configured proxy, if it is in a header. */
  readonly key: string | undefined
  /** Values for the headers of the same names in the outbound call. */
  readonly connection: 'close' | 'keep-alive' | undefined
  readonly keepAlive: string | undefined
  readonly dryRun: boolean
}

/** Parses `headers`, names and values alternating. Throws `header_invalid` and `plan_insufficient`. */
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

/** Only these two words: any other would name a header for the next server to remove. */
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

/** RFC 2068, section 19.7.1.1: parameters, each a token whose value is a token or a quoted string. */
const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
const PARAMETER = `${TOKEN}(?:=(?:${TOKEN}|"[^"\\\\\\x00-\\x1f\\x7f-\\uffff]*"))?`
const KEEP_ALIVE = new RegExp(`^${PARAMETER}(?:[ \\t]*,[ \\t]*${PARAMETER})*$`)

function invalid(name: string, message: string): ServiceError {
  return new ServiceError('header_invalid', { [name]: [message] })
}
