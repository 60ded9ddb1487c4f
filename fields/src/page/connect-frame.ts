/** The page's side of the handshake: see protocol/handshake.ts. */
import { isGreeting, writeIntroduction, type Greeting } from '../protocol/handshake.ts'
import { misuse } from './fields-error.ts'

/**
 * Ours: the iframe's script says hello before its document has loaded. The message and the event may still come in either order,
 * this far apart, in milliseconds.
 */
const HELLO_MS_MAX = 1000

/** Without a document, an iframe fires no event at all in some browsers, in milliseconds. */
const LOAD_MS_MAX = 30_000

/**
 * Loads `url` in `iframe`, which is part of the document, and returns a port to it. Throws a FieldsError if the document does
 * not answer, for example since it may not be embedded here.
 */
export async function connectFrame(
  iframe: HTMLIFrameElement,
  url: URL,
  signal: AbortSignal,
): Promise<MessagePort> {
  const nonce = crypto.randomUUID()
  // A pathname of its own for a page that is "null", such as a sandboxed one, could be forged by any other such page.
  if (origin === 'null') {
    throw misuse('origin_opaque', 'A page without an origin of its own cannot mount card fields.')
  }
  const done = new AbortController()
  const ended = AbortSignal.any([signal, done.signal])
  try {
    return await new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(misuse('removed', REMOVED)), { once: true })
      const fail = (): void => reject(misuse('not_embedded', notEmbedded(url.origin)))
      let timer = setTimeout(fail, LOAD_MS_MAX)
      const loaded = (): void => {
        // Firefox announces the empty document before it, too. A page cannot read the vault's document.
        if (iframe.contentDocument !== null) return
        clearTimeout(timer)
        timer = setTimeout(fail, HELLO_MS_MAX)
      }
      ended.addEventListener('abort', () => clearTimeout(timer), { once: true })
      iframe.addEventListener('load', loaded, { signal: ended })
      // Firefox, if the page's policy does not allow the URL.
      iframe.addEventListener('error', fail, { signal: ended })
      const listen = (event: MessageEvent<unknown>): void => {
        const source = iframe.contentWindow
        const expected = { greeting: 'hello', source, origin: url.origin, nonce } as const
        if (source === null || !isGreeting(event, expected)) return
        const { port1, port2 } = new MessageChannel()
        const answer: Greeting = { symbolon: 'connect', nonce }
        source.postMessage(answer, url.origin, [port2])
        resolve(port1)
      }
      addEventListener('message', listen, { signal: ended })
      iframe.src = `${url.href}#${writeIntroduction({ origin, nonce })}`
    })
  } finally {
    done.abort()
  }
}

const REMOVED = 'The card fields were removed from the page.'

function notEmbedded(vault: string): string {
  return (
    `The card fields cannot be embedded in this page. Check that the application of the public key lists ${origin} in its ` +
    `allowed_origins, that the key exists, and that the page's Content-Security-Policy has ${vault} in frame-src.`
  )
}
