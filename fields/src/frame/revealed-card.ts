/** Shows a stored card to its owner, with a button that copies the number. */
import { brandsOf } from '../card/brands.ts'
import { groupDigits } from '../card/card-number.ts'
import type { FieldName } from '../protocol/messages.ts'
import { BrandMark } from './brand-mark.ts'
import type { FrameSession } from './frame-session.ts'
import { refusal } from './problems.ts'
import { tokenPathOf } from './submission.ts'
import type { Texts } from './texts/texts.ts'
import { CallError } from './frame-client.ts'

export interface RevealedCardOptions {
  readonly session: FrameSession
  readonly texts: Texts
  readonly onCopy: () => void
}

export class RevealedCard {
  readonly element: HTMLElement
  readonly #options: RevealedCardOptions
  /** Counts what was to be shown, and clears. */
  #turn = 0

  constructor(options: RevealedCardOptions) {
    this.#options = options
    this.element = document.createElement('div')
    this.element.className = 'revealed'
    // Dragged text could be dropped on the page.
    this.element.addEventListener('dragstart', (event) => event.preventDefault())
  }

  /** Shows the token, for which the session must be authorized. Throws a CallError. */
  async show(tokenId: string): Promise<void> {
    const { session } = this.#options
    const turn = ++this.#turn
    const { data } = await session.call({ method: 'GET', path: tokenPathOf(tokenId) })
    // What is cleared stays cleared.
    if (turn !== this.#turn)
      throw new CallError(refusal('cleared', 'The card was cleared before it arrived.'))
    const rows = this.#rowsOf(data)
    if (rows.length === 0) {
      throw new CallError(
        refusal(
          'not_revealed',
          'The session cannot read this token: authorize it with the transform reveal.',
        ),
      )
    }
    const list = document.createElement('dl')
    list.className = 'card'
    list.append(...rows)
    this.element.replaceChildren(list)
  }

  clear(): void {
    this.#turn++
    this.#options.session.forget()
    this.element.replaceChildren()
  }

  #rowsOf(data: unknown): HTMLElement[] {
    if (typeof data === 'string') return [this.#row('text', [valueOf(data)], data)]
    if (typeof data !== 'object' || data === null) return []
    const { number, expiration_month, expiration_year, cvc, name } = data as Record<string, unknown>
    const rows: HTMLElement[] = []
    if (typeof number === 'string') {
      const row = this.#row('number', spelledDigits(groupDigits(number)), number)
      const mark = new BrandMark('brand')
      mark.show(brandsOf(number))
      row.querySelector('dt')!.append(' ', mark.element)
      rows.push(row)
    }
    if (typeof expiration_month === 'number' && typeof expiration_year === 'number') {
      const month = String(expiration_month).padStart(2, '0')
      rows.push(this.#row('expiry', [valueOf(`${month} / ${expiration_year}`)]))
    }
    if (typeof cvc === 'string') rows.push(this.#row('cvc', spelledDigits(cvc)))
    if (typeof name === 'string') rows.push(this.#row('name', [valueOf(name)]))
    return rows
  }

  /** `copied` is the text that the row's button copies; null for no button. */
  #row(field: FieldName, value: readonly Node[], copied: string | null = null): HTMLElement {
    const row = document.createElement('div')
    row.className = `row ${field}`
    const term = document.createElement('dt')
    term.className = 'label'
    const label = document.createElement('span')
    label.id = `${field}-label`
    label.textContent = this.#options.texts.labels[field]
    term.append(label)
    const description = document.createElement('dd')
    description.append(...value)
    if (copied !== null) description.append(this.#copyButton(copied, label.id))
    row.append(term, description)
    return row
  }

  #copyButton(text: string, labelId: string): HTMLElement {
    const { texts, onCopy } = this.#options
    const button = document.createElement('button')
    button.id = 'copy'
    button.className = 'button'
    button.type = 'button'
    button.textContent = texts.copy
    button.setAttribute('aria-labelledby', `${button.id} ${labelId}`)
    const status = document.createElement('span')
    status.className = 'copied'
    status.setAttribute('role', 'status')
    button.addEventListener('click', () => {
      const done = (message: string): void => void (status.textContent = message)
      // Cleared first, so that a second copy is announced too.
      done('')
      navigator.clipboard.writeText(text).then(
        () => {
          done(texts.copied)
          onCopy()
        },
        () => done(texts.notCopied),
      )
    })
    const both = document.createElement('span')
    both.className = 'copy'
    both.append(button, status)
    return both
  }
}

function valueOf(text: string): HTMLElement {
  const value = document.createElement('span')
  value.className = 'value'
  value.dir = 'auto'
  value.textContent = text
  return value
}

/** Returns the digits to see, and the same digits spelled out for screen readers, which would read `4242` as a number. */
function spelledDigits(text: string): HTMLElement[] {
  const seen = valueOf(text)
  seen.dir = 'ltr'
  seen.ariaHidden = 'true'
  const spoken = document.createElement('span')
  spoken.className = 'spoken'
  spoken.dir = 'ltr'
  spoken.textContent = text
    .split(' ')
    .map((group) => [...group].join(' '))
    .join(', ')
  return [seen, spoken]
}
