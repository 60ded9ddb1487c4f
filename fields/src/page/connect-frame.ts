/** The page's side of the handshake: see protocol/handshake.ts. */
import { isGreeting, writeIntroduction, type Greeting } from '../protocol/handshake.ts'
import { misuse } from './fields-error.ts'

/**
 * Ours, in milliseconds. The iframe's script says hello before its document has loaded, but the message and the load event
 * may still arrive in either order, more than a second apart on a device that is busy with much else. Only the developer of a
 * page that may not embed the fields waits this long, and the browser's console has told them by then.
 */
const HELLO_MS_MAX = 10_000

/** How long to wait for any document, in milliseconds: without one, an iframe fires no event at all in some browsers. */
const LOAD_MS_MAX = 30_000

/**
 * Loads `url` in `iframe`, which is already in the document, and returns a port to it. Throws a FieldsError if the loaded
 * document does not answer, for example because it may not be embedded here, or if `signal` aborts.
 */
export async function connectFrame(
  iframe: HTMLIFrameElement,
  url: URL,
  signal: AbortSignal,
): Promise<MessagePort> {
  const nonce = crypto.randomUUID()
  // The origin "null", of a sandboxed page for example, identifies nothing: any other such page has it too.
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
        // Firefox also fires for the initial empty document, which a page can read. It cannot read the vault's.
        if (iframe.contentDocument !== null) return
        clearTimeout(timer)
        timer = setTimeout(fail, HELLO_MS_MAX)
      }
      ended.addEventListener('abort', () => clearTimeout(timer), { once: true })
      iframe.addEventListener('load', loaded, { signal: ended })
      // Firefox fires this if the page's Content-Security-Policy forbids the URL.
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
