/** The inputs of one iframe: builds them, formats while the buyer types, and knows their state. */
import { type BrandName } from '../card/brands.ts'
import {
  binOf,
  groupDigits,
  lastFourOf,
  NUMBER_DIGITS_MAX,
  digitsOf,
  readNumber,
} from '../card/card-number.ts'
import { formatExpiry, readExpiry } from '../card/expiry-date.ts'
import { CODE_DIGITS_MAX, readCode } from '../card/security-code.ts'
import type { CardState, FieldErrorCode, FieldName, FieldState } from '../protocol/messages.ts'
import type { Texts } from './texts/texts.ts'

export interface CardFormOptions {
  readonly fields: readonly FieldName[]
  readonly brands: readonly BrandName[] | null
  readonly texts: Texts
  readonly onChange: (state: CardState) => void
  readonly onEvent: (type: 'focus' | 'blur' | 'autofill', field: FieldName) => void
  readonly onSubmit: () => void
}

/** The data of a token, or of a patch. */
export type CardData = Readonly<Record<string, string | number>>

interface Field {
  readonly name: FieldName
  readonly element: HTMLElement
  readonly input: HTMLInputElement
  readonly errorElement: HTMLElement
  /** Whether its flaw is shown: it was left, or a submission needed it, and nothing was typed since. */
  judged: boolean
}

const ATTRIBUTES: Readonly<Record<FieldName, Readonly<Record<string, string>>>> = {
  number: { autocomplete: 'cc-number', inputmode: 'numeric', dir: 'ltr' },
  expiry: { autocomplete: 'cc-exp', inputmode: 'numeric', dir: 'ltr' },
  cvc: { autocomplete: 'cc-csc', inputmode: 'numeric', dir: 'ltr' },
  name: { autocomplete: 'cc-name', autocapitalize: 'words' },
  'postal-code': { autocomplete: 'postal-code', autocapitalize: 'characters' },
}

/** Ours, of a name or a postal code. */
const TEXT_CHARS_MAX = 200

export class CardForm {
  readonly element: HTMLFormElement
  readonly #options: CardFormOptions
  readonly #fields: readonly Field[]
  /** Counts changes of any value. */
  #revision = 0

  constructor(options: CardFormOptions) {
    this.#options = options
    this.element = document.createElement('form')
    this.element.noValidate = true
    this.#fields = options.fields.map((it) => this.#build(it))
    this.element.append(...this.#fields.map((it) => it.element))
    // An input's Enter submits a form only if that has a button, or one field alone.
    this.element.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' || event.isComposing) return
      event.preventDefault()
      options.onSubmit()
    })
    this.element.addEventListener('submit', (event) => event.preventDefault())
  }

  get revision(): number {
    return this.#revision
  }

  /** Returns the state that the page may know. */
  get state(): CardState {
    const fields = Object.fromEntries(
      this.#fields.map((it) => [it.name, this.#stateOf(it)]),
    ) as CardState['fields']
    const states = Object.values(fields)
    const number = this.#number()
    const brands = number?.brands ?? []
    return {
      fields,
      empty: states.every((it) => it.empty),
      complete: states.every((it) => it.complete),
      brands,
      brand: brands[0] ?? null,
      lastFour: number?.complete === true ? lastFourOf(number.digits) : null,
      bin: number?.complete === true ? binOf(number.digits) : null,
    }
  }

  /** Returns the data to send, or null: then the flaws are shown and the first field with one has the focus. */
  read(): CardData | null {
    for (const field of this.#fields) field.judged = true
    this.#render()
    const flawed = this.#fields.find((it) => this.#fault(it) !== null)
    if (flawed !== undefined) {
      flawed.input.focus()
      return null
    }
    return Object.assign({}, ...this.#fields.map((it) => this.#dataOf(it))) as CardData
  }

  focus(name: FieldName | null): void {
    const field = this.#fields.find((it) => it.name === name) ?? this.#fields[0]
    field?.input.focus()
  }

  clear(): void {
    for (const field of this.#fields) {
      field.input.value = ''
      field.judged = false
    }
    this.#changed()
  }

  #build(name: FieldName): Field {
    const { labels, placeholders } = this.#options.texts
    const element = document.createElement('div')
    element.className = `field ${name}`
    const label = document.createElement('label')
    label.htmlFor = name
    label.textContent = labels[name]
    const input = document.createElement('input')
    input.id = name
    input.name = ATTRIBUTES[name]['autocomplete']!
    input.spellcheck = false
    input.placeholder = placeholders[name] ?? ''
    input.draggable = false
    for (const [attribute, value] of Object.entries(ATTRIBUTES[name])) {
      input.setAttribute(attribute, value)
    }
    input.setAttribute('aria-describedby', `${name}-error`)
    input.setAttribute('aria-required', 'true')
    const errorElement = document.createElement('p')
    errorElement.id = `${name}-error`
    errorElement.className = 'error'
    errorElement.setAttribute('aria-live', 'polite')
    element.append(label, input, errorElement)
    const field: Field = { name, element, input, errorElement, judged: false }
    this.#listen(field)
    return field
  }

  #listen(field: Field): void {
    const { name, input } = field
    input.addEventListener('input', (event) => {
      const autofilled = isAutofilled(input)
      format(field, event instanceof InputEvent ? event.inputType : '')
      field.judged = false
      this.#changed()
      if (autofilled) this.#options.onEvent('autofill', name)
    })
    input.addEventListener('focus', () => this.#options.onEvent('focus', name))
    input.addEventListener('blur', () => {
      // An empty field that the buyer tabs through is no mistake yet.
      if (input.value !== '') field.judged = true
      this.#render()
      this.#options.onChange(this.state)
      this.#options.onEvent('blur', name)
    })
    // Dragged text can be dropped on the page.
    input.addEventListener('dragstart', (event) => event.preventDefault())
  }

  #changed(): void {
    this.#revision++
    this.#render()
    this.#options.onChange(this.state)
  }

  #render(): void {
    for (const field of this.#fields) {
      const { error, complete } = this.#stateOf(field)
      field.element.classList.toggle('complete', complete)
      field.element.classList.toggle('invalid', error !== null)
      field.input.setAttribute('aria-invalid', String(error !== null))
      const message = error?.message ?? ''
      // Written again, the same text would be announced again.
      if (field.errorElement.textContent !== message) field.errorElement.textContent = message
    }
  }

  #stateOf(field: Field): FieldState {
    const code = this.#fault(field)
    const error =
      code === null || !field.judged ? null : { code, message: this.#message(field.name, code) }
    return { empty: field.input.value.trim() === '', complete: code === null, error }
  }

  #message(name: FieldName, code: FieldErrorCode): string {
    const { errors } = this.#options.texts
    return errors[`${name}.${code}`] ?? errors[code] ?? code
  }

  #fault({ name, input: { value } }: Field): FieldErrorCode | null {
    switch (name) {
      case 'number':
        return readNumber(value, this.#options.brands).error
      case 'expiry':
        return readExpiry(value, new Date()).error
      case 'cvc':
        return readCode(value, this.#brand()).error
      case 'name':
      case 'postal-code':
        if (value.trim() === '') return 'missing'
        return value.length > TEXT_CHARS_MAX ? 'too-long' : null
    }
  }

  #dataOf({ name, input: { value } }: Field): Readonly<Record<string, string | number>> {
    switch (name) {
      case 'number':
        return { number: digitsOf(value, NUMBER_DIGITS_MAX) }
      case 'expiry': {
        const { month, year } = readExpiry(value, new Date())
        return { expiration_month: month!, expiration_year: year! }
      }
      case 'cvc':
        return { cvc: digitsOf(value, CODE_DIGITS_MAX) }
      case 'name':
        return { name: value.trim() }
      case 'postal-code':
        return { postal_code: value.trim() }
    }
  }

  #number(): ReturnType<typeof readNumber> | null {
    const field = this.#fields.find((it) => it.name === 'number')
    return field === undefined ? null : readNumber(field.input.value, this.#options.brands)
  }

  #brand(): BrandName | null {
    return this.#number()?.brands[0] ?? null
  }
}

/** Rewrites the text as it should look, and keeps the caret at the same digit. */
function format({ name, input }: Field, inputType: string): void {
  const { value } = input
  const caret = input.selectionStart ?? value.length
  let formatted = value
  if (name === 'number') formatted = groupDigits(digitsOf(value, NUMBER_DIGITS_MAX))
  if (name === 'cvc') formatted = digitsOf(value, CODE_DIGITS_MAX)
  // A caret within an expiry date means a correction: it is left as it is typed.
  if (name === 'expiry' && caret === value.length) {
    formatted = formatExpiry(value, inputType.startsWith('delete'))
  }
  if (formatted === value) return
  const before = digitsOf(value.slice(0, caret), NUMBER_DIGITS_MAX).length
  input.value = formatted
  const at = caret === value.length ? formatted.length : indexAfterDigits(formatted, before)
  // Moving the caret would focus a field that autofill has just filled.
  if (document.activeElement === input) input.setSelectionRange(at, at)
}

function indexAfterDigits(text: string, count: number): number {
  let seen = 0
  for (let at = 0; at < text.length; at++) {
    if (seen === count) return at
    if (/\d/.test(text[at]!)) seen++
  }
  return text.length
}

function isAutofilled(input: HTMLInputElement): boolean {
  try {
    return input.matches(':autofill')
  } catch {
    // Browsers that do not know the pseudo-class say nothing of autofill.
    return false
  }
}
