/** Shows a stored card to its owner, with a button that copies the number. */
import { groupDigits } from '../card/card-number.ts'
import type { FrameSession } from './frame-session.ts'
import { refusal } from './problems.ts'
import { tokenPathOf } from './submission.ts'
import type { Texts } from './texts/texts.ts'
import { CallError, type VaultClient } from './vault-client.ts'

export interface RevealedCardOptions {
  readonly client: VaultClient
  readonly session: FrameSession
  readonly texts: Texts
  readonly onCopy: () => void
}

export class RevealedCard {
  readonly element: HTMLElement
  readonly #options: RevealedCardOptions
  constructor(options: RevealedCardOptions) {
    this.#options = options
    this.element = document.createElement('dl')
  }

  /** Shows the token, for which the session must have been authorized. */
  async show(tokenId: string): Promise<void> {
    const { client, session } = this.#options
    const { data } = await client.call({
      method: 'GET',
      path: tokenPathOf(tokenId),
      apiKey: session.key,
    })
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
    this.#options.session.forget()
    this.element.replaceChildren()
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
