/**
 * A checkout as careless shops write them: its inputs stand in the page, and its script hands the card to everything. Each attempt
 * of a hostile page must see the card here: otherwise it proves nothing when it sees none of it in card fields.
 */

/** Returns the page's form. */
export const PLAIN_FORM = `<form>
  <label>Card number <input name="number" autocomplete="cc-number"></label>
  <label>Expiry date <input name="expiry" autocomplete="cc-exp"></label>
  <label>Security code <input name="cvc" autocomplete="cc-csc"></label>
</form>
<output id="review"></output>
<plain-preview></plain-preview>`

/** Returns the page's script. It defines `card`, with a `tokenize()` like that of the fields, and `pay()`. */
export function plainScript(vaultOrigin: string, publicKey: string): string {
  return `;(${checkout})(${JSON.stringify(vaultOrigin)}, ${JSON.stringify(publicKey)})`
}

/** Runs in the browser. */
function checkout(vaultOrigin: string, publicKey: string): void {
  const form = document.querySelector('form')!
  const review = document.querySelector('output')!

  class Preview extends HTMLElement {
    static readonly formAssociated = true
    readonly #internals = this.attachInternals()
    readonly #root = this.attachShadow({ mode: 'closed' })
    show(number: string): void {
      this.#root.textContent = number
      this.#internals.setFormValue(number)
    }
  }
  customElements.define('plain-preview', Preview)

  form.addEventListener('submit', (event) => event.preventDefault())
  form.addEventListener('input', () => undefined)

  const receipt = document.createElement('iframe')
  form.append(receipt)
  receipt.contentWindow!.addEventListener('message', ({ data, ports }: MessageEvent) => {
    if ((data as { symbolon?: string } | null)?.symbolon === undefined) return
    ports[0]!.onmessage = () => ports[0]!.postMessage(cardOf())
  })

  interface Card {
    number: string
    expiry: string
    cvc: string
  }
  const cardOf = (): Card => {
    const card = {} as Card
    card.number = form.querySelector('input')!.value.trim().replace(/\D/g, '')
    return Object.assign(card, Object.fromEntries(new FormData(form).entries()))
  }

  const send = async (
    method: string,
    path: string,
    type: string,
    body: object,
  ): Promise<unknown> => {
    const response = await fetch(vaultOrigin + path, {
      method,
      headers: { 'BT-API-KEY': publicKey, 'Content-Type': type },
      body: JSON.stringify(body),
    })
    return await response.json()
  }
  const dataOf = (): object => {
    const { number, cvc } = cardOf()
    return { number, expiration_month: 11, expiration_year: 2047, cvc }
  }
  const tokenize = async (options: object = {}): Promise<unknown> => {
    const body = { type: 'card', data: dataOf(), ...options }
    return await send('POST', '/tokens', 'application/json', body)
  }
  const update = async (id: string): Promise<unknown> =>
    await send('PATCH', `/tokens/${id}`, 'application/merge-patch+json', { data: dataOf() })

  const pay = async (): Promise<void> => {
    const card = cardOf()
    const { number } = card
    const body = JSON.stringify(card)
    const tries: (() => unknown)[] = [
      // Sends it.
      async () => await fetch(new Request('/pay', { method: 'POST', body })),
      () => {
        const request = new XMLHttpRequest()
        request.open('POST', '/pay')
        request.send(body)
      },
      () => navigator.sendBeacon('/pay', body),
      () => new WebSocket(`ws://${location.host}/?${new URLSearchParams({ number })}`),
      () => new EventSource(`/events?${encodeURIComponent(number)}`).close(),
      async () => await new Response(body).json(),
      async () => await fetch(`/bin?number=${number}`),
      () => {
        const pixel = new Image()
        pixel.src = `/pixel?number=${number}`
      },
      () => postMessage(body, '*'),
      () => {
        const { port1, port2 } = new MessageChannel()
        port2.onmessage = ({ data }) => {
          if ((data as { type?: string } | null)?.type === 'read') port2.postMessage(cardOf())
        }
        port1.addEventListener('message', () => undefined)
        port1.postMessage(body)
        port2.postMessage(body)
        port1.start()
      },
      () => new BroadcastChannel('checkout').postMessage(body),
      () => new SharedWorker('data:text/javascript,').port.postMessage(body),
      () => new Worker('data:text/javascript,').postMessage(body),
      // Computes with it.
      () =>
        [...number]
          .map(Number)
          .filter((it) => it > 4)
          .includes(9),
      () => Array.prototype.slice.call([number]).join().split('').slice(4),
      () => [number].forEach((it) => /\d/.test(it)),
      () => new Map().set('number', number),
      () => structuredClone(card),
      () => Object.entries(card),
      async () => await crypto.subtle.digest('SHA-256', new TextEncoder().encode(body)),
      () => btoa(body),
      () => new URLSearchParams({ number }).toString(),
      async () => await Promise.resolve(number).then((it) => it),
      // Shows and keeps it.
      () => review.setAttribute('data-number', number),
      () => void (review.textContent = `${number} `),
      () => void (receipt.contentDocument!.body.textContent = number),
      () => document.querySelector<Preview>('plain-preview')!.show(number),
      () => Object.assign(window, { draft: card }),
      () => localStorage.setItem('draft', body),
      () => console.log(body),
      () => history.replaceState(card, '', `#${number}`),
      () => void Promise.reject(new Error(`No answer for ${number}`)),
      () => form.requestSubmit(),
      () => form.dispatchEvent(new CustomEvent('change', { detail: card })),
    ]
    for (const it of tries) {
      try {
        await it()
      } catch {
        // Whatever an attempt has broken.
      }
    }
  }
  Object.assign(window, {
    card: { tokenize, update, state: null, addEventListener: () => {} },
    pay,
  })
}
