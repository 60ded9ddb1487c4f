/** Shows a stored card to its owner, with a button that copies the number. */
import { groupDigits } from '../card/card-number.ts'
import { refusal } from './problems.ts'
import type { Texts } from './texts/texts.ts'
import { CallError, type VaultClient } from './vault-client.ts'

export interface RevealedCardOptions {
  readonly client: VaultClient
  readonly publicKey: string
  readonly texts: Texts
  readonly onCopy: () => void
}

export class RevealedCard {
  readonly element: HTMLElement
  readonly #options: RevealedCardOptions
  /** Stays in this document: whoever has it may read what the backend authorizes it for. */
  #sessionKey: string | null = null

  constructor(options: RevealedCardOptions) {
    this.#options = options
    this.element = document.createElement('dl')
    // Dragged text could be dropped on the page.
    this.element.addEventListener('dragstart', (event) => event.preventDefault())
  }

  /** Opens a session without rights, and returns the nonce by which a backend can authorize it. */
  async openSession(): Promise<string> {
    const { client, publicKey } = this.#options
    const opened = await client.call({ method: 'POST', path: '/sessions', apiKey: publicKey })
    const { session_key, nonce } = opened as { session_key: string; nonce: string }
    this.#sessionKey = session_key
    return nonce
  }

  /** Shows the token, for which the session must have been authorized. */
  async show(tokenId: string): Promise<void> {
    const apiKey = this.#sessionKey
    if (apiKey === null) {
      throw new CallError(
        refusal('session_missing', 'Open a session, and have it authorized first.'),
      )
    }
    const path = `/tokens/${encodeURIComponent(tokenId)}`
    const { data } = (await this.#read(path, apiKey)) as { data?: unknown }
    const shown = this.#rowsOf(data)
    if (shown.length === 0) {
      throw new CallError(
        refusal(
          'not_revealed',
          'The session may not read the data of this token: authorize it with the transform reveal.',
        ),
      )
    }
    this.element.replaceChildren(...shown)
  }

  clear(): void {
    this.#sessionKey = null
    this.element.replaceChildren()
  }

  async #read(path: string, apiKey: string): Promise<unknown> {
    try {
      return await this.#options.client.call({ method: 'GET', path, apiKey })
    } catch (error) {
      if (!(error instanceof CallError) || error.problem.status !== 401) throw error
      const detail = 'The session has expired. Call reveal() again.'
      throw new CallError({ ...error.problem, code: 'session_expired', detail })
    }
  }

  #rowsOf(data: unknown): Node[] {
    const { labels } = this.#options.texts
    if (typeof data === 'string') return this.#row(labels.text, data, data)
    if (typeof data !== 'object' || data === null) return []
    const { number, expiration_month, expiration_year, cvc, name } = data as Record<string, unknown>
    const rows: Node[] = []
    if (typeof number === 'string')
      rows.push(...this.#row(labels.number, groupDigits(number), number))
    if (typeof expiration_month === 'number' && typeof expiration_year === 'number') {
      const month = String(expiration_month).padStart(2, '0')
      rows.push(...this.#row(labels.expiry, `${month} / ${expiration_year}`, null))
    }
    if (typeof cvc === 'string') rows.push(...this.#row(labels.cvc, cvc, null))
    if (typeof name === 'string') rows.push(...this.#row(labels.name, name, null))
    return rows
  }

  /** `copied` is what a button puts on the clipboard; null for no button. */
  #row(label: string, text: string, copied: string | null): Node[] {
    const term = document.createElement('dt')
    term.textContent = label
    const value = document.createElement('dd')
    const shown = document.createElement('span')
    shown.dir = 'auto'
    shown.textContent = text
    value.append(shown)
    if (copied !== null) value.append(this.#copyButton(copied))
    return [term, value]
  }

  #copyButton(text: string): HTMLElement {
    const { texts, onCopy } = this.#options
    const button = document.createElement('button')
    button.type = 'button'
    button.textContent = texts.copy
    const status = document.createElement('span')
    status.setAttribute('role', 'status')
    button.addEventListener('click', () => {
      const done = (message: string): void => void (status.textContent = message)
      navigator.clipboard.writeText(text).then(
        () => {
          done(texts.copied)
          onCopy()
        },
        () => done(texts.notCopied),
      )
    })
    const both = document.createElement('span')
    both.append(button, status)
    return both
  }
}
