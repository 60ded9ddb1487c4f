/** Base class of all elements: mounts one iframe of the vault's origin, and exchanges messages with it. */
import type {
  CallContent,
  CallResult,
  ColorScheme,
  FieldName,
  FieldsState,
  FrameMessage,
  PageMessage,
  RoleConfiguration,
} from '../protocol/messages.ts'
import { keyHashOf } from '../protocol/key-hash.ts'
import type { StyleRules } from '../protocol/style-rules.ts'
import { connectFrame } from './connect-frame.ts'
import { FieldsError, misuse } from './fields-error.ts'

/** Events of the elements and the types of their `detail`. They do not bubble. */
export interface FieldsEvents {
  ready: CustomEvent<null>
  change: CustomEvent<FieldsState>
  focus: CustomEvent<{ readonly field: FieldName }>
  blur: CustomEvent<{ readonly field: FieldName }>
  autofill: CustomEvent<{ readonly field: FieldName }>
  copy: CustomEvent<null>
  /** The element cannot be used: it could not be mounted, or its attributes are wrong. */
  error: CustomEvent<FieldsError>
}

/** Has the page's backend authorize the session with this nonce for one token. The element awaits the result. */
export type Authorize = (nonce: string) => unknown

interface PendingCall {
  readonly resolve: (result: CallResult) => void
  readonly reject: (error: FieldsError) => void
}

/** The files of a build lie in one folder of the vault, so the script's own URL says where the vault is. */
const BUILD_URL = new URL('.', import.meta.url)

/**
 * Room around the inputs for focus rings, in CSS pixels: frame.css has the same padding. The iframe is larger by this much, so
 * that the inputs align with the page's own.
 */
const RING_PX = 4

export abstract class FrameElement extends HTMLElement {
  #iframe: HTMLIFrameElement | null = null
  #port: MessagePort | null = null
  #mounted = new AbortController()
  #ready = newPromise()
  #styles: StyleRules = {}
  #state: FieldsState | null = null
  readonly #pending = new Map<number, PendingCall>()
  #calls = 0
  #sessionTurn: Promise<void> = Promise.resolve()

  /** Settles once the element can be used; rejects with a FieldsError if it cannot be mounted. */
  get ready(): Promise<void> {
    return this.#ready.promise
  }

  /** The state from the last `change` event; null before the first. */
  get state(): FieldsState | null {
    return this.#state
  }

  get styles(): StyleRules {
    return this.#styles
  }

  /** Replaces the styles of the fields. A part or property that cannot be set makes the element fail with an `error` event. */
  set styles(styles: StyleRules) {
    this.#styles = styles
    this.#post({ type: 'style', styles })
  }

  connectedCallback(): void {
    showAsBlock(this.getRootNode())
    this.#takeOwnStyles()
    this.#start()
  }

  disconnectedCallback(): void {
    this.#stop(misuse('removed', 'The element was removed from the page.'))
  }

  /** Moves the focus into the named field, else the first incomplete one, else the first. */
  override focus(field?: FieldName | FocusOptions): void {
    // Only a focused iframe can move the focus within its document. If focused again, Chromium's can lose it.
    if (document.activeElement !== this.#iframe) this.#iframe?.focus()
    this.#post({ type: 'focus', field: typeof field === 'string' ? field : null })
  }

  /** Empties the element. */
  clear(): void {
    this.#post({ type: 'clear' })
  }

  /** Returns the role of the iframe and its options. Throws a FieldsError if an attribute is wrong. */
  protected abstract configure(): RoleConfiguration

  /** The key whose application lists the page's origin. Throws a FieldsError if it is missing. */
  protected get publicKey(): string {
    const key = this.getAttribute('public-key')
    if (key === null || key === '') {
      throw misuse('public_key_missing', `Set the attribute public-key of <${this.localName}>.`)
    }
    return key
  }

  /** Whether the iframe is invisible. */
  protected get hiddenFrame(): boolean {
    return false
  }

  /** Sends a call to the iframe once it is ready, and returns the result. Rejects with a FieldsError. */
  protected async call(content: CallContent): Promise<CallResult> {
    if (!this.isConnected) throw misuse('removed', 'The element is not in the page.')
    await this.#ready.promise
    const call = ++this.#calls
    return await new Promise((resolve, reject) => {
      this.#pending.set(call, { resolve, reject })
      this.#post({ ...content, call })
    })
  }

  /** Like call(), but focuses an invalid field. Done here, since only the page can reliably move the focus into an iframe. */
  protected async submit(content: CallContent): Promise<CallResult> {
    try {
      return await this.call(content)
    } catch (error) {
      if (error instanceof FieldsError && error.code === 'incomplete') this.focus()
      throw error
    }
  }

  /**
   * Has a session of the iframe authorized, and sends a call that needs it. One at a time, since an iframe has one session.
   * Rejects with a FieldsError, or as `authorize` does.
   */
  protected async callAuthorized(authorize: Authorize, content: CallContent): Promise<CallResult> {
    const before = this.#sessionTurn
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#sessionTurn = promise
    await before
    try {
      await authorize((await this.submit({ type: 'open-session' })) as string)
      return await this.submit(content)
    } finally {
      resolve()
    }
  }

  #start(): void {
    const { signal } = this.#mounted
    this.#mount(signal).catch((error: unknown) => {
      if (!signal.aborted) this.#fail(error)
    })
  }

  #stop(error: FieldsError): void {
    this.#mounted.abort()
    this.#port?.close()
    this.#iframe?.remove()
    this.#ready.reject(error)
    this.#rejectCalls(error)
    this.#mounted = new AbortController()
    this.#port = null
    this.#iframe = null
    this.#state = null
    this.#ready = newPromise()
  }

  /** Starts again when the iframe loads a second document: the first is gone, with all that was typed and called. */
  #watch(iframe: HTMLIFrameElement, signal: AbortSignal): void {
    let loaded = false
    const onLoad = (): void => {
      // The empty document before it, in Firefox. The vault's cannot be read.
      if (iframe.contentDocument !== null) return
      if (loaded) {
        this.#stop(misuse('removed', 'The iframe was loaded again.'))
        this.#start()
      }
      loaded = true
    }
    iframe.addEventListener('load', onLoad, { signal })
  }

  /** Styles that were set before the script defined the element are a property of its own, which hides the setter. */
  #takeOwnStyles(): void {
    if (!Object.hasOwn(this, 'styles')) return
    const { styles } = this
    delete (this as { styles?: StyleRules }).styles
    this.styles = styles
  }

  async #mount(signal: AbortSignal): Promise<void> {
    if (!isSecureContext) {
      throw misuse('page_insecure', 'Card fields need a page served over HTTPS, or from localhost.')
    }
    const { publicKey } = this
    const role = this.configure()
    const url = new URL(`frame/${await keyHashOf(publicKey)}`, BUILD_URL)
    if (signal.aborted) return
    const iframe = frameFor(this.title, this.hiddenFrame)
    this.#iframe = iframe
    this.#watch(iframe, signal)
    // A copy of the element, or of the page, has one that leads nowhere.
    for (const it of this.querySelectorAll(':scope > iframe[data-symbolon]')) it.remove()
    this.append(iframe)
    const port = await connectFrame(iframe, url, signal)
    this.#port = port
    port.addEventListener('message', ({ data }: MessageEvent<FrameMessage>) => this.#receive(data))
    port.start()
    this.#post({
      type: 'configure',
      configuration: {
        ...role,
        publicKey,
        locale: this.getAttribute('locale') ?? languageOf(this),
        colorScheme: colorSchemeOf(this),
        styles: this.#styles,
      },
    })
  }

  #receive(message: FrameMessage): void {
    switch (message.type) {
      case 'ready':
        if (this.title === '' && this.#iframe !== null) this.#iframe.title = message.title
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
      case 'copy':
        this.#tell('copy', null)
        break
      case 'submit':
        this.closest('form')?.requestSubmit()
        break
      case 'resize':
        if (this.#iframe !== null) this.#iframe.style.height = `${message.height}px`
        break
      case 'result':
        this.#pending.get(message.call)?.resolve(message.result)
        this.#pending.delete(message.call)
        break
      case 'failure':
        this.#pending.get(message.call)?.reject(new FieldsError(message.problem))
        this.#pending.delete(message.call)
        break
      case 'style-refused':
        this.#tell('error', new FieldsError(message.problem))
        break
      case 'refused':
        this.#fail(new FieldsError(message.problem))
        break
    }
  }

  #post(message: PageMessage): void {
    this.#port?.postMessage(message)
  }

  #fail(error: unknown): void {
    const shown =
      error instanceof FieldsError ? error : misuse('fault', 'The element could not be mounted.')
    this.#ready.reject(shown)
    this.#rejectCalls(shown)
    this.#tell('error', shown)
  }

  #rejectCalls(error: FieldsError): void {
    for (const { reject } of this.#pending.values()) reject(error)
    this.#pending.clear()
  }

  #tell<Type extends keyof FieldsEvents>(type: Type, detail: FieldsEvents[Type]['detail']): void {
    this.dispatchEvent(new CustomEvent(type, { detail }))
  }
}

/** Returns the words of an attribute, or null if it is absent. */
export function wordsOf(element: HTMLElement, attribute: string): string[] | null {
  const text = element.getAttribute(attribute)
  return text === null ? null : text.split(/\s+/).filter((it) => it !== '')
}

function frameFor(title: string, hidden: boolean): HTMLIFrameElement {
  const iframe = document.createElement('iframe')
  iframe.allow = 'autofill; clipboard-write'
  iframe.title = title
  iframe.dataset['symbolon'] = ''
  // Set one by one through CSSOM: a page's Content-Security-Policy need not allow inline styles.
  const { style } = iframe
  // The page's rules for iframes in general are not meant for this one.
  style.display = 'block'
  style.border = '0'
  style.padding = '0'
  style.minWidth = '0'
  style.maxWidth = 'none'
  style.minHeight = '0'
  style.maxHeight = 'none'
  style.height = '0'
  style.colorScheme = 'inherit'
  if (!hidden) {
    style.width = `calc(100% + ${2 * RING_PX}px)`
    style.margin = `-${RING_PX}px`
  } else {
    style.position = 'absolute'
    style.width = '0'
    iframe.tabIndex = -1
    iframe.ariaHidden = 'true'
  }
  return iframe
}

/** Custom elements are inline by default. The rule has no specificity, so any rule of the page wins. */
const BLOCK_RULE =
  ':where(symbolon-card, symbolon-field, symbolon-group, symbolon-reveal, symbolon-text) { display: block }'
let blockSheet: CSSStyleSheet | null = null

/** Adopts a style sheet, since a page's Content-Security-Policy need not allow inline styles. */
function showAsBlock(root: Node): void {
  if (!(root instanceof Document || root instanceof ShadowRoot)) return
  if (blockSheet === null) {
    blockSheet = new CSSStyleSheet()
    blockSheet.insertRule(BLOCK_RULE)
  }
  if (!root.adoptedStyleSheets.includes(blockSheet)) root.adoptedStyleSheets.push(blockSheet)
}

function languageOf(element: HTMLElement): string {
  return element.closest('[lang]')?.getAttribute('lang') ?? 'en'
}

/** Returns the computed `color-scheme`, without its other keywords. A page that sets none is light. */
function colorSchemeOf(element: HTMLElement): ColorScheme {
  const { colorScheme } = getComputedStyle(element)
  const light = /\blight\b/.test(colorScheme)
  const dark = /\bdark\b/.test(colorScheme)
  if (light && dark) return 'light dark'
  return dark ? 'dark' : 'light'
}

/** Returns a promise whose rejection never counts as unhandled, even if no one awaits it. */
function newPromise(): PromiseWithResolvers<void> {
  const made = Promise.withResolvers<void>()
  made.promise.catch(() => {})
  return made
}
