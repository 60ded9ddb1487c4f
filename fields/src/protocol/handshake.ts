/**
 * How a page and its iframe find each other.
 *
 * The page names its origin and a nonce in the fragment of the iframe's URL, which is never sent to a server. The iframe checks
 * that the vault lists this origin, and says hello to exactly this origin. The page answers with a port, to the vault's origin.
 * Each side checks the other's window, origin and nonce; from then on only the port is used.
 */

/** Told in the fragment of the iframe's URL. */
export interface Introduction {
  /** The page's. */
  readonly origin: string
  readonly nonce: string
}

export interface Greeting {
  readonly symbolon: 'hello' | 'connect'
  readonly nonce: string
}

export function writeIntroduction({ origin, nonce }: Introduction): string {
  return new URLSearchParams({ origin, nonce }).toString()
}

/** Returns null if `fragment` is none. */
export function readIntroduction(fragment: string): Introduction | null {
  const parameters = new URLSearchParams(fragment.replace(/^#/, ''))
  const origin = parameters.get('origin')
  const nonce = parameters.get('nonce')
  return origin === null || nonce === null || nonce.length < 16 ? null : { origin, nonce }
}

/** Whether a message event is the greeting that is waited for: from this window, of this origin, with this nonce. */
export function isGreeting(
  { source, origin, data }: Pick<MessageEvent<unknown>, 'source' | 'origin' | 'data'>,
  expected: {
    readonly greeting: Greeting['symbolon']
    readonly source: unknown
    readonly origin: string
    readonly nonce: string
  },
): boolean {
  if (source !== expected.source || origin !== expected.origin) return false
  if (typeof data !== 'object' || data === null) return false
  const { symbolon, nonce } = data as Partial<Greeting>
  return symbolon === expected.greeting && nonce === expected.nonce
}
