/**
 * Lists of the destinations that something may be sent to: hosts by name, or all names below one.
 *
 * Source: interface.md, Applications. What a list lets pass is decided at the door out, `world/egress.ts`.
 */

/** What an entry looks like, to be said in a sentence after "must be". */
export const DESTINATION_FORM =
  'a host name such as api.example.com, or *.example.com for all names below one; perhaps with a port'

/**
 * Returns an entry in its one written form, or null when it is none: lower case, without a trailing dot, other
 * alphabets as they are resolved. Without a port it is for every port of the host.
 */
export function writtenDestination(text: string): string | null {
  const parts = PARTS.exec(text)
  if (parts === null) return null
  const [, below = '', name = '', port] = parts
  const url = `https://${name}/`
  if (!URL.canParse(url)) return null
  const host = new URL(url).hostname.replace(/\.$/, '')
  if (!(NAME.test(host) || (ADDRESS.test(host) && below === ''))) return null
  if (port === undefined) return below + host
  const number = Number(port)
  return number >= 1 && number <= PORT_MAX ? `${below}${host}:${number}` : null
}

/** Returns the list of what is in both; null stands for a list of everything. */
export function commonDestinations(
  some: readonly string[] | null,
  others: readonly string[] | null,
): readonly string[] | null {
  if (some === null) return others
  if (others === null) return some
  const common = some.flatMap((a) => others.flatMap((b) => narrower(a, b) ?? []))
  return [...new Set(common)]
}

/** Returns the entry of all that both entries let pass; null when that is nothing. */
function narrower(a: string, b: string): string | null {
  const [one, other] = [split(a), split(b)]
  const host = isWithin(one.host, other.host)
    ? one.host
    : isWithin(other.host, one.host)
      ? other.host
      : null
  const samePort = one.port === other.port || one.port === '' || other.port === ''
  return host === null || !samePort ? null : host + (one.port || other.port)
}

/** Whether a name, or all names below one, are among `others`. */
function isWithin(host: string, others: string): boolean {
  return host === others || (others.startsWith('*.') && host.endsWith(others.slice(1)))
}

/** The port with its colon; empty for every port. */
function split(entry: string): { readonly host: string; readonly port: string } {
  const at = entry.search(/:\d+$/)
  return at < 0 ? { host: entry, port: '' } : { host: entry.slice(0, at), port: entry.slice(at) }
}

const PARTS = /^(\*\.)?([^\s:/?#@%\\[\]]+|\[[0-9A-Fa-f:.]+\])(?::(\d{1,5}))?$/
const NAME = /^(?=.{1,253}$)(?!.*(?:^|\.)[\d]+$)[a-z\d_-]{1,63}(?:\.[a-z\d_-]{1,63})*$/
const ADDRESS = /^(?:[\d.]+|\[[\da-f:.]+\])$/
const PORT_MAX = 65_535
