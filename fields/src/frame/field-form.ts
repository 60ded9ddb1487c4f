/** The inputs of one iframe: builds them, formats their text while the buyer types, and tracks their state. */
import type { BrandName } from '../card/brands.ts'
import { binOf, lastFourOf, readNumber, type NumberState } from '../card/card-number.ts'
import { caretAfter } from '../card/caret.ts'
import type { FieldName, FieldsState, FieldState } from '../protocol/messages.ts'
import { BrandChoice } from './brand-choice.ts'
import { BrandMark } from './brand-mark.ts'
import { FIELD_KINDS, type FieldContext, type FieldData } from './field-kinds.ts'
import { messageOf, type Texts } from './texts/texts.ts'

export interface FieldFormOptions {
  readonly fields: readonly FieldName[]
  readonly acceptedBrands: readonly BrandName[] | null
  readonly texts: Texts
  /** Labels that replace the language's own. */
  readonly labels?: Readonly<Partial<Record<FieldName, string>>>
  readonly onChange: (state: FieldsState) => void
  readonly onEvent: (type: 'focus' | 'blur' | 'autofill', field: FieldName) => void
  readonly onSubmit: () => void
}

/** Most numbers have this many digits, even for brands that allow more. */
const USUAL_LENGTH = 16

/** What was typed, if valid. */
export interface Reading {
  readonly data: FieldData
  /** The brand that the buyer chose for a co-branded card; null for any other card, and before a choice. */
  readonly chosenBrand: BrandName | null
}

interface Field {
  readonly name: FieldName
  readonly element: HTMLElement
  readonly input: HTMLInputElement
  readonly errorElement: HTMLElement
  /** Whether its error is shown: the buyer left the field or submitted it, and has typed nothing since. */
  judged: boolean
}

export class FieldForm {
  readonly element: HTMLFormElement
  readonly #options: FieldFormOptions
  readonly #fields: readonly Field[]
  readonly #brandChoice: BrandChoice
  readonly #brandMark = new BrandMark('number-brand')
  /** The brand of a number in another iframe. */
  #brandElsewhere: BrandName | null = null
  /** The field that focus() should have focused. */
  #focusWanted: Field | null = null
  /** The number whose first and last digits the page knows; empty if none. */
  #shown = ''

  constructor(options: FieldFormOptions) {
    this.#options = options
    this.element = document.createElement('form')
    this.element.noValidate = true
    this.#fields = options.fields.map((it) => this.#build(it))
    this.#brandChoice = new BrandChoice(options.texts.brandChoice, () => this.#changed())
    const number = this.#fields.find((it) => it.name === 'number')
    number?.element.firstElementChild!.after(this.#brandMark.element)
    number?.errorElement.after(this.#brandChoice.element)
    this.element.append(...this.#fields.map((it) => it.element))
    this.element.addEventListener('submit', (event) => event.preventDefault())
    // Enter submits a form of several inputs only if it has a button.
    this.element.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' || endsComposition(event)) return
      event.preventDefault()
      options.onSubmit()
    })
    // WebKit ignores focus() in a cross-origin iframe until the buyer has interacted with it, and a key press counts. So a
    // character typed while the iframe has the focus, but none of its inputs, goes to the field that focus() meant.
    document.addEventListener('keydown', (event) => {
      if (document.activeElement !== document.body || !isCharacter(event)) return
      ;(this.#focusWanted ?? this.#fields[0])?.input.focus()
    })
  }

  /** The state that the page may know. */
  get state(): FieldsState {
    const fields = Object.fromEntries(
      this.#fields.map((it) => [it.name, this.#stateOf(it)]),
    ) as FieldsState['fields']
    const states = Object.values(fields)
    const number = this.#number()
    const shown = number !== null && this.#isSettled(number) ? this.#shown : null
    const { brands = [], choices = [] } = number ?? {}
    return {
      fields,
      empty: states.every((it) => it.empty),
      complete: states.every((it) => it.complete),
      brands,
      brand: choices.length === 1 ? choices[0]! : this.#brandChoice.chosen,
      lastFour: shown === null || shown !== number?.digits ? null : lastFourOf(shown),
      bin: shown === null ? null : binOf(shown),
    }
  }

  /** Returns what was typed, or null if it is invalid; the errors are then shown. */
  read(): Reading | null {
    for (const field of this.#fields) field.judged = true
    this.#changed()
    if (!this.state.complete) return null
    const data = Object.assign(
      {},
      ...this.#fields.map(({ name, input }) => FIELD_KINDS[name].data(input.value)),
    ) as FieldData
    return { data, chosenBrand: this.#brandChoice.chosen }
  }

  /** Moves the focus to the named field, else the first incomplete one, else the first. */
  focus(name: FieldName | null = null): void {
    const field =
      this.#fields.find((it) => it.name === name) ??
      this.#fields.find((it) => !this.#stateOf(it).complete) ??
      this.#fields[0]
    this.#focusWanted = field ?? null
    field?.input.focus()
  }

  clear(): void {
    for (const field of this.#fields) {
      field.input.value = ''
      field.judged = false
    }
    this.#changed()
  }

  /** Sets the brand of a number in another iframe, which decides how long the security code is. */
  setBrand(brand: BrandName | null): void {
    this.#brandElsewhere = brand
    this.#changed()
  }

  #build(name: FieldName): Field {
    const { texts, labels } = this.#options
    const element = document.createElement('div')
    element.className = `field ${name}`
    const label = document.createElement('label')
    label.className = 'label'
    label.htmlFor = name
    label.textContent = labels?.[name] ?? texts.labels[name]
    const input = document.createElement('input')
    input.id = name
    input.className = 'input'
    input.name = name
    input.spellcheck = false
    const placeholder = texts.placeholders[name]
    if (placeholder !== undefined) input.placeholder = placeholder
    for (const [attribute, value] of Object.entries(FIELD_KINDS[name].attributes)) {
      input.setAttribute(attribute, value)
    }
    input.setAttribute('aria-required', 'true')
    // No `aria-errormessage` as well: screen readers that support both would announce the error twice.
    const description = name === 'number' ? `${this.#brandMark.element.id} ` : ''
    input.setAttribute('aria-describedby', `${description}${name}-error`)
    const errorElement = document.createElement('div')
    errorElement.id = `${name}-error`
    errorElement.className = 'error'
    errorElement.setAttribute('aria-live', 'polite')
    const entry = document.createElement('div')
    entry.className = 'entry'
    entry.append(input, errorElement)
    element.append(label, entry)
    const field: Field = { name, element, input, errorElement, judged: false }
    this.#listen(field)
    return field
  }

  #listen(field: Field): void {
    const { name, input } = field
    const { onEvent } = this.#options
    input.addEventListener('input', (event) => {
      // Checked before formatting, which ends the autofilled state.
      const autofilled = isAutofilled(input)
      const { isComposing, inputType } = event instanceof InputEvent ? event : NO_EDIT
      // An input method replaces the text it has composed so far, and must find it unchanged.
      if (!isComposing) format(field, inputType)
      field.judged = false
      this.#changed()
      if (autofilled) onEvent('autofill', name)
    })
    input.addEventListener('compositionend', () => {
      format(field, '')
      this.#changed()
    })
    input.addEventListener('focus', () => onEvent('focus', name))
    input.addEventListener('blur', () => {
      // Tabbing through an empty field is not a mistake yet.
      if (input.value !== '') field.judged = true
      this.#changed()
      onEvent('blur', name)
    })
    // Dragged text could be dropped on the page.
    input.addEventListener('dragstart', (event) => event.preventDefault())
  }

  #changed(): void {
    this.#chooseShown()
    this.#render()
    this.#options.onChange(this.state)
  }

  /**
   * Chooses the number whose first and last digits the page may see. If a complete number, such as the first 13 digits of a Visa
   * card, begins a longer one, it chooses only one of them: the ends of both leave a single digit unknown, and the check digit
   * gives that away.
   */
  #chooseShown(): void {
    const number = this.#number()
    if (number === null || !this.#isSettled(number)) return
    const { digits } = number
    const overlaps = digits.startsWith(this.#shown) || this.#shown.startsWith(digits)
    if (this.#shown === '' || !overlaps) this.#shown = digits
  }

  /** Whether a number is complete, and the buyer seems to have finished typing it. */
  #isSettled({ complete, full, digits }: NumberState): boolean {
    if (!complete) return false
    const field = this.#fields.find((it) => it.name === 'number')!
    const typing = document.activeElement === field.input && !field.judged
    return !typing || full || digits.length >= USUAL_LENGTH
  }

  #render(): void {
    const { choices = [], brands = [] } = this.#number() ?? {}
    this.#brandChoice.offer(choices)
    const { chosen } = this.#brandChoice
    this.#brandMark.show(chosen === null ? brands : [chosen])
    for (const field of this.#fields) {
      const { error, complete } = this.#stateOf(field)
      field.element.classList.toggle('complete', complete)
      field.element.classList.toggle('invalid', error !== null)
      field.input.setAttribute('aria-invalid', String(error !== null))
      const message = error?.message ?? ''
      // Writing the same text again would announce it again.
      if (field.errorElement.textContent !== message) field.errorElement.textContent = message
    }
  }

  #stateOf({ name, input: { value }, judged }: Field): FieldState {
    const code = FIELD_KINDS[name].fault(value, this.#context())
    const error =
      code === null || !judged
        ? null
        : { code, message: messageOf(this.#options.texts, name, code) }
    return { empty: value.trim() === '', complete: code === null, error }
  }

  #context(): FieldContext {
    return {
      brand: this.#number()?.brands[0] ?? this.#brandElsewhere,
      acceptedBrands: this.#options.acceptedBrands,
      today: new Date(),
    }
  }

  #number(): NumberState | null {
    const field = this.#fields.find((it) => it.name === 'number')
    return field === undefined ? null : readNumber(field.input.value, this.#options.acceptedBrands)
  }
}

/** Stands in for autofill, which sets the text without an InputEvent. */
const NO_EDIT = { isComposing: false, inputType: '' }

/** Safari ends the composition before this event, but still reports the key code of an input method. */
function endsComposition({ isComposing, keyCode }: KeyboardEvent): boolean {
  return isComposing || keyCode === 229
}

/** Autofill fires `keydown` events without a key. */
function isCharacter({ key, ctrlKey, metaKey }: Partial<KeyboardEvent>): boolean {
  return key !== undefined && [...key].length === 1 && ctrlKey !== true && metaKey !== true
}

/** Formats the text, and keeps the caret at the same digit. */
function format({ name, input }: Field, inputType: string): void {
  const { value } = input
  const caret = input.selectionStart ?? value.length
  // Autofill can leave the caret anywhere, but a buyer cannot be correcting a field without the focus.
  const atEnd = caret === value.length || document.activeElement !== input
  const deleting = inputType.startsWith('delete')
  const formatted = FIELD_KINDS[name].format(value, { deleting, atEnd })
  if (formatted === value) return
  input.value = formatted
  const at = caretAfter(value, caret, formatted, inputType === 'deleteContentForward')
  // In any other field, setting a selection would take the focus from the field where autofill was chosen.
  if (document.activeElement === input) input.setSelectionRange(at, at)
}

function isAutofilled(input: HTMLInputElement): boolean {
  try {
    return input.matches(':autofill')
  } catch {
    // A browser without this pseudo-class does not report autofill.
    return false
  }
}
