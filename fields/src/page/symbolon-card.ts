/**
 * `<symbolon-card public-key="key_...">`: the fields of a card in one iframe of the vault's origin.
 *
 * The page mounts and styles them, and gets a token. What is typed never reaches it.
 */
import type { BrandName } from '../card/brands.ts'
import type {
  CardState,
  ColorScheme,
  Configuration,
  FieldName,
  FieldsToken,
  FrameMessage,
  PageMessage,
  TokenOptions,
} from '../protocol/messages.ts'
import { keyHashOf } from '../protocol/key-hash.ts'
import type { StyleRules } from '../protocol/style-rules.ts'
import { connectFrame } from './connect-frame.ts'
import { FieldsError, misuse } from './fields-error.ts'

/** Events of the element, with what their `detail` holds. */
export interface SymbolonCardEvents {
  ready: CustomEvent<null>
  change: CustomEvent<CardState>
  focus: CustomEvent<{ readonly field: FieldName }>
  blur: CustomEvent<{ readonly field: FieldName }>
  autofill: CustomEvent<{ readonly field: FieldName }>
  /** The fields could not be mounted. */
  error: CustomEvent<FieldsError>
}

interface Call {
  readonly resolve: (token: FieldsToken) => void
  readonly reject: (error: FieldsError) => void
}

const DEFAULT_FIELDS: readonly FieldName[] = ['number', 'expiry', 'cvc']

/** A build's files lie in one folder of the vault, so the script's own URL says where the vault is. */
const BUILD_URL = new URL('.', import.meta.url)

export class SymbolonCard extends HTMLElement {
  /** An iframe of a class of its own, so that a page can give it a size. */
  #iframe: HTMLIFrameElement | null = null
  #port: MessagePort | null = null
  #mounting = new AbortController()
  #ready = Promise.withResolvers<void>()
  #styles: StyleRules = {}
  #state: CardState | null = null
  readonly #calls = new Map<number, Call>()
  #callCount = 0

  constructor() {
    super()
    // Whoever awaits it gets the error; that nobody does is no fault.
    this.#ready.promise.catch(() => {})
  }

  /** Settles once the fields can be used; rejects with a FieldsError if they cannot be mounted. */
  get ready(): Promise<void> {
    return this.#ready.promise
  }

  /** The last state that a `change` event told; null before the first. */
  get state(): CardState | null {
    return this.#state
  }

  get styles(): StyleRules {
    return this.#styles
  }

  /** Replaces the looks of the fields. An unknown part or property is reported by an `error` event. */
  set styles(styles: StyleRules) {
    this.#styles = styles
    this.#post({ type: 'style', styles })
  }

  connectedCallback(): void {
    this.#mount().catch((error: unknown) => this.#fail(error))
  }

  disconnectedCallback(): void {
    this.#mounting.abort()
    this.#port?.close()
    this.#port = null
    this.#iframe?.remove()
    this.#iframe = null
    this.#state = null
    this.#rejectCalls(misuse('removed', 'The card fields were removed from the page.'))
    this.#mounting = new AbortController()
    this.#ready = Promise.withResolvers()
    this.#ready.promise.catch(() => {})
  }

  /** Moves the focus into a field, by default the first one. */
  override focus(field?: FieldName | FocusOptions): void {
    // Only a focused iframe can move the focus within its document.
    this.#iframe?.focus()
    this.#post({ type: 'focus', field: typeof field === 'string' ? field : null })
  }

  /** Empties all fields. */
  clear(): void {
    this.#post({ type: 'clear' })
  }

  /**
   * Stores the card and returns its token, without data. Rejects with a FieldsError: `incomplete` if a field has a flaw, which is
   * then shown and focused. Called twice with the same values it makes one token, also after a timeout.
   */
  async tokenize(options: TokenOptions = {}): Promise<FieldsToken> {
    return await this.#call((call) => ({ type: 'tokenize', call, options }))
  }

  /** Changes a stored card by what was typed, such as its code: `fields="cvc"`. */
  async update(tokenId: string, options: TokenOptions = {}): Promise<FieldsToken> {
    return await this.#call((call) => ({ type: 'update', call, tokenId, options }))
  }

  async #mount(): Promise<void> {
    const publicKey = this.getAttribute('public-key')
    if (publicKey === null || publicKey === '') {
      throw misuse('public_key_missing', 'Set the attribute public-key of <symbolon-card>.')
    }
    if (!isSecureContext) {
      throw misuse(
        'page_insecure',
        'Card fields work on pages that came by HTTPS, or from localhost.',
      )
    }
    const { signal } = this.#mounting
    const iframe = document.createElement('iframe')
    iframe.allow = 'autofill; clipboard-write'
    iframe.title = this.getAttribute('title') ?? 'Card details'
    // CSSOM: a page's CSP need not allow inline styles.
    Object.assign(iframe.style, { display: 'block', border: '0', width: '100%', height: '0' })
    iframe.style.colorScheme = 'inherit'
    this.#iframe = iframe
    const url = new URL(`frame/${await keyHashOf(publicKey)}`, BUILD_URL)
    if (signal.aborted) return
    this.replaceChildren(iframe)
    const port = await connectFrame(iframe, url, signal)
    this.#port = port
    port.addEventListener('message', ({ data }: MessageEvent<FrameMessage>) => this.#receive(data))
    port.start()
    this.#post({ type: 'configure', configuration: this.#configuration(publicKey) })
  }

  #configuration(publicKey: string): Configuration {
    const fields = wordsOf(this.getAttribute('fields')) as FieldName[] | null
    const { colorScheme } = getComputedStyle(this)
    return {
      publicKey,
      fields: fields ?? DEFAULT_FIELDS,
      locale: this.getAttribute('locale') ?? this.closest('[lang]')?.getAttribute('lang') ?? 'en',
      brands: wordsOf(this.getAttribute('brands')) as BrandName[] | null,
      colorScheme: colorSchemeOf(colorScheme),
      styles: this.#styles,
    }
  }

  #receive(message: FrameMessage): void {
    switch (message.type) {
      case 'ready':
        this.#ready.resolve()
        this.#tell('ready', null)
        break
      case 'change':
        this.#state = message.state
        this.#tell('change', message.state)
        break
      case 'focus':
      case 'blur':
      case 'autofill':
        this.#tell(message.type, { field: message.field })
        break
      case 'submit':
        this.closest('form')?.requestSubmit()
        break
      case 'resize':
        this.#iframe!.style.height = `${message.height}px`
        break
      case 'result':
        this.#calls.get(message.call)?.resolve(message.token)
        this.#calls.delete(message.call)
        break
      case 'failure':
        this.#calls.get(message.call)?.reject(new FieldsError(message.problem))
        this.#calls.delete(message.call)
        break
      case 'refused':
        this.#fail(new FieldsError(message.problem))
        break
    }
  }

  async #call(render: (call: number) => PageMessage): Promise<FieldsToken> {
    await this.#ready.promise
    const call = ++this.#callCount
    return await new Promise((resolve, reject) => {
      this.#calls.set(call, { resolve, reject })
      this.#post(render(call))
    })
  }

  #post(message: PageMessage): void {
    this.#port?.postMessage(message)
  }

  #fail(error: unknown): void {
    const shown =
      error instanceof FieldsError
        ? error
        : misuse('fault', 'The card fields could not be mounted.')
    this.#ready.reject(shown)
    this.#rejectCalls(shown)
    this.#tell('error', shown)
  }

  #rejectCalls(error: FieldsError): void {
    for (const { reject } of this.#calls.values()) reject(error)
    this.#calls.clear()
  }

  #tell<Type extends keyof SymbolonCardEvents>(
    type: Type,
    detail: SymbolonCardEvents[Type]['detail'],
  ): void {
    this.dispatchEvent(new CustomEvent(type, { detail }))
  }
}

function wordsOf(attribute: string | null): string[] | null {
  return attribute?.split(/\s+/).filter((it) => it !== '') ?? null
}

/** Returns what `color-scheme` computes to, without its other words. A page that says nothing is light. */
function colorSchemeOf(computed: string): ColorScheme {
  const light = /\blight\b/.test(computed)
  const dark = /\bdark\b/.test(computed)
  if (light && dark) return 'light dark'
  return dark ? 'dark' : 'light'
}
