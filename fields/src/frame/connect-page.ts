/** The iframe's side of the handshake: see protocol/handshake.ts. */
import { isGreeting, readIntroduction, type Greeting } from '../protocol/handshake.ts'

/**
 * Returns a port to the page that embeds this document, once that page has proven its origin. Throws if the URL has no
 * introduction or its origin is not allowed, and never resolves for a page of another origin.
 *
 * `allowedOrigins` are the origins whose pages may embed the document; `frame-ancestors` lists the same.
 */
export async function connectPage(allowedOrigins: readonly string[]): Promise<MessagePort> {
  const introduction = readIntroduction(location.hash)
  if (introduction === null) throw new Error('The URL of this document has no introduction')
  const { origin, nonce } = introduction
  if (!allowedOrigins.includes(origin))
    throw new Error('The page has an origin that is not allowed')
  return await new Promise((resolve) => {
    const listen = (event: MessageEvent<unknown>): void => {
      const expected = { greeting: 'connect', source: parent, origin, nonce } as const
      const [port] = event.ports
      if (port === undefined || !isGreeting(event, expected)) return
      removeEventListener('message', listen)
      resolve(port)
    }
    addEventListener('message', listen)
    const hello: Greeting = { symbolon: 'hello', nonce }
    parent.postMessage(hello, origin)
  })
}

/** Returns the origins that the vault wrote into the document. */
export function originsOf(document: Document): readonly string[] {
  const written = document.querySelector<HTMLMetaElement>('meta[name=allowed-origins]')
  return written?.content.split(' ').filter((it) => it !== '') ?? []
}
