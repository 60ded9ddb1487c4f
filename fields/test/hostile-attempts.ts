/**
 * Attempts of a page's own scripts to see a card. Each runs on a careless checkout, where it must succeed, and on card fields,
 * where it must not: see hostile-page.test.ts.
 *
 * The functions run in the browser, so they refer to nothing outside themselves.
 */

/** How the browser's side of an attempt reports and hooks. */
export interface Tools {
  /** Reports anything: it is turned into text, deeply. */
  readonly see: (...values: unknown[]) => void
  /** Reports the arguments, the receiver and the result of each call of a method, which still works. */
  readonly spy: (owner: object, ...methods: readonly PropertyKey[]) => void
  /** Reports what is read from and written to an accessor. */
  readonly spyAccessor: (owner: object, property: PropertyKey) => void
  /** Reports the arguments of each `new`. */
  readonly spyConstructor: (name: string) => void
  /** Returns every window of the page's iframes that can be reached, by any way. */
  readonly frames: () => unknown[]
  /** The element of the fields, or the checkout's own object with the same methods. Absent in `first`. */
  readonly card: Fields
}

export interface Fields {
  readonly tokenize: (options?: unknown) => Promise<unknown>
  readonly update: (tokenId: string, options?: unknown) => Promise<unknown>
  readonly state?: unknown
  readonly addEventListener: (type: string, listener: (event: CustomEvent) => void) => void
}

export interface HostileAttempt {
  readonly name: string
  /** Runs in the head of the page, before any other script. */
  readonly first?: (tools: Tools) => void
  /** Runs after a buyer has filled in the card, and the page has had it tokenized. */
  readonly later?: (tools: Tools) => unknown
  /** It only listens, so others of its kind may listen on the same careless checkout and prove as much. */
  readonly listens?: boolean
  /** It changes so much that others cannot run on the same page of fields. */
  readonly alone?: boolean
  /** The fields may refuse to be mounted at all. */
  readonly mayPrevent?: boolean
}

export const ATTEMPTS: readonly HostileAttempt[] = [
  // What leaves the page.
  { name: 'patched fetch', first: ({ spy }) => spy(window, 'fetch') },
  { name: 'patched XMLHttpRequest', first: ({ spy }) => spy(XMLHttpRequest.prototype, 'send') },
  { name: 'patched sendBeacon', first: ({ spy }) => spy(Navigator.prototype, 'sendBeacon') },
  { name: 'patched WebSocket', first: ({ spyConstructor }) => spyConstructor('WebSocket') },
  { name: 'patched Request', first: ({ spyConstructor }) => spyConstructor('Request') },
  { name: 'patched EventSource', first: ({ spyConstructor }) => spyConstructor('EventSource') },
  {
    name: 'patched body readers of responses',
    first: ({ spy }) => spy(Response.prototype, 'json', 'text'),
  },
  {
    name: 'performance entries',
    listens: true,
    first: ({ see }) => {
      const observer = new PerformanceObserver((list) => {
        for (const it of list.getEntries()) see(it.name)
      })
      observer.observe({ type: 'resource', buffered: true })
    },
    later: ({ see }) => {
      for (const it of performance.getEntries()) see(it.name)
    },
  },
  {
    name: 'a service worker',
    alone: true,
    later: async ({ see, card }) => {
      navigator.serviceWorker.addEventListener('message', (event) => see(event.data))
      const { workerUrl } = window as unknown as { workerUrl: string }
      await navigator.serviceWorker.register(workerUrl, { scope: '/' })
      await navigator.serviceWorker.ready
      if (navigator.serviceWorker.controller === null) {
        await new Promise((resolve) =>
          navigator.serviceWorker.addEventListener('controllerchange', resolve),
        )
      }
      await card.tokenize({ metadata: { order: 'with a worker' } })
      // Messages of a worker come in order, so the report of this request is the last.
      await new Promise((resolve) => {
        navigator.serviceWorker.addEventListener('message', ({ data }) => {
          if ((data as { url: string }).url.endsWith('/last')) resolve(null)
        })
        void fetch('/last')
      })
      for (const it of await navigator.serviceWorker.getRegistrations()) await it.unregister()
    },
  },

  // Messages.
  {
    name: 'patched postMessage of windows',
    first: ({ spy }) => spy(window, 'postMessage'),
  },
  {
    name: 'a message listener in the capture phase',
    listens: true,
    first: ({ see }) => {
      addEventListener(
        'message',
        ({ data, ports }) => {
          see(data)
          for (const port of ports) port.addEventListener('message', (event) => see(event.data))
        },
        true,
      )
    },
  },
  {
    name: 'patched postMessage of ports',
    first: ({ spy }) => spy(MessagePort.prototype, 'postMessage'),
  },
  {
    name: 'patched listeners of ports',
    first: ({ see, spyAccessor }) => {
      spyAccessor(MessageEvent.prototype, 'data')
      const { addEventListener } = EventTarget.prototype
      MessagePort.prototype.addEventListener = function (
        this: MessagePort,
        ...parameters: unknown[]
      ) {
        Reflect.apply(addEventListener, this, ['message', (it: MessageEvent) => see(it.data)])
        Reflect.apply(addEventListener, this, parameters)
      }
    },
  },
  {
    name: 'a man in the middle of each MessageChannel',
    first: ({ see }) => {
      const Native = MessageChannel
      const relay = (from: MessagePort, to: MessagePort): void => {
        from.onmessage = ({ data, ports }) => {
          see(data)
          to.postMessage(data, [...ports])
        }
      }
      window.MessageChannel = function () {
        const [near, far] = [new Native(), new Native()]
        relay(near.port2, far.port1)
        relay(far.port1, near.port2)
        return { port1: near.port1, port2: far.port2 }
      } as unknown as typeof MessageChannel
    },
  },
  {
    name: 'forged calls on a stolen port',
    first: () => {
      const Native = MessageChannel
      const stolen: MessagePort[] = []
      Object.assign(window, { stolen })
      window.MessageChannel = function () {
        const channel = new Native()
        stolen.push(channel.port1)
        return channel
      } as unknown as typeof MessageChannel
    },
    later: async ({ see }) => {
      const { stolen } = window as unknown as { stolen: MessagePort[] }
      const types = ['read', 'data', 'brand', 'join', 'open-session', 'reveal', 'state', 'get']
      const inherited = ['constructor', 'toString', 'valueOf', '__proto__', 'hasOwnProperty']
      for (const port of stolen) {
        port.addEventListener('message', ({ data }) => see(data))
        port.start()
        for (const type of [...types, ...inherited]) {
          port.postMessage({ type, call: 900, fields: ['number'], tokenId: '..', data: null })
        }
        const role = { role: 'text', label: 'x', tokenType: 'token', group: null, fields: ['cvc'] }
        port.postMessage({ type: 'configure', configuration: role })
        port.postMessage({ type: 'style', styles: { input: { color: 'url(/x)' } } })
        port.postMessage(null)
      }
      await new Promise((resolve) => setTimeout(resolve, 100))
    },
  },
  {
    name: 'a forged invitation to each iframe',
    later: async ({ see, frames }) => {
      for (const it of frames() as Window[]) {
        for (const greeting of ['join', 'connect', 'hello']) {
          const { port1, port2 } = new MessageChannel()
          port1.onmessage = ({ data }) => see(data)
          const nonces = [...document.querySelectorAll('iframe')].map((it) =>
            new URLSearchParams(new URL(it.src || 'about:blank').hash.slice(1)).get('nonce'),
          )
          it.postMessage({ symbolon: greeting, nonce: nonces[0] }, '*', [port2])
          port1.postMessage({ type: 'read' })
        }
      }
      await new Promise((resolve) => setTimeout(resolve, 100))
    },
  },
  {
    name: 'BroadcastChannel',
    first: ({ see, spy }) => {
      spy(BroadcastChannel.prototype, 'postMessage')
      const names = ['symbolon', 'fields', 'card', 'checkout']
      for (const it of names) new BroadcastChannel(it).onmessage = ({ data }) => see(data)
    },
  },
  { name: 'patched SharedWorker', first: ({ spyConstructor }) => spyConstructor('SharedWorker') },
  { name: 'patched Worker', first: ({ spyConstructor }) => spyConstructor('Worker') },

  // What a buyer does.
  {
    name: 'key listeners at the window',
    listens: true,
    first: ({ see }) => {
      for (const type of ['keydown', 'keypress', 'keyup']) {
        let typed = ''
        addEventListener(
          type,
          (event) => {
            const { key } = event as KeyboardEvent
            if (/^\d$/.test(key)) typed += key
            see(`${typed} `)
          },
          true,
        )
      }
    },
  },
  {
    name: 'input listeners at the window',
    listens: true,
    first: ({ see }) => {
      let typed = ''
      const types = ['beforeinput', 'input', 'textInput', 'compositionupdate', 'compositionend']
      for (const type of types) {
        addEventListener(
          type,
          (event) => {
            if (type === 'beforeinput') typed += (event as InputEvent).data ?? ''
            see(typed, (event.target as HTMLInputElement).value)
          },
          true,
        )
      }
    },
  },
  {
    name: 'clipboard listeners at the window',
    listens: true,
    first: ({ see }) => {
      for (const type of ['copy', 'cut', 'paste']) {
        addEventListener(
          type,
          (event) => {
            const { clipboardData, target } = event as ClipboardEvent
            see(clipboardData?.getData('text'), String(getSelection()))
            see((target as HTMLInputElement).value)
          },
          true,
        )
      }
    },
  },
  {
    name: 'change and focus listeners at the window',
    listens: true,
    first: ({ see }) => {
      for (const type of ['change', 'blur', 'focus', 'focusin', 'focusout', 'invalid', 'select']) {
        addEventListener(type, ({ target }) => see((target as HTMLInputElement).value), true)
      }
    },
  },
  {
    name: 'selection listeners at the document',
    listens: true,
    first: ({ see }) => {
      document.addEventListener('selectionchange', () => {
        see(String(getSelection()), (document.activeElement as HTMLInputElement).value)
      })
    },
  },
  {
    name: 'a drop zone for dragged text',
    listens: true,
    first: ({ see }) => {
      addEventListener('dragover', (event) => event.preventDefault(), true)
      for (const type of ['dragstart', 'dragenter', 'drop']) {
        addEventListener(
          type,
          (event) => {
            see((event as DragEvent).dataTransfer?.getData('text'))
            if (type === 'drop') event.preventDefault()
          },
          true,
        )
      }
    },
  },
  {
    name: 'events of the element, keystroke by keystroke',
    listens: true,
    first: ({ see }) => {
      addEventListener('DOMContentLoaded', () => {
        const elements = document.querySelectorAll('form, symbolon-card, symbolon-group *')
        for (const type of ['change', 'focus', 'blur', 'autofill', 'copy', 'input', 'ready']) {
          for (const it of elements) {
            it.addEventListener(type, ({ detail, target }: CustomEventInit & Event) => {
              see(detail, (target as HTMLInputElement).value, (it as HTMLInputElement).value)
            })
          }
        }
      })
    },
  },

  // Patched built-ins.
  {
    name: 'patched EventTarget.prototype.addEventListener',
    first: ({ see }) => {
      const { addEventListener } = EventTarget.prototype
      EventTarget.prototype.addEventListener = function (type, listener, ...rest) {
        const wrapped = function (this: unknown, event: Event): unknown {
          see((event as CustomEvent).detail, (event as MessageEvent).data)
          see((event.target as HTMLInputElement).value)
          const handler = typeof listener === 'function' ? listener : listener?.handleEvent
          return handler === undefined ? undefined : Reflect.apply(handler, this, [event])
        }
        Reflect.apply(addEventListener, this, [type, wrapped, ...rest])
      }
    },
  },
  {
    name: 'patched Array.prototype',
    first: ({ spy }) =>
      spy(Array.prototype, 'push', 'map', 'join', 'filter', 'forEach', 'includes', 'slice'),
  },
  {
    name: 'patched String.prototype',
    first: ({ spy }) =>
      spy(String.prototype, 'replace', 'replaceAll', 'slice', 'split', 'trim', Symbol.iterator),
  },
  {
    name: 'patched RegExp.prototype',
    first: ({ spy }) => spy(RegExp.prototype, 'exec', 'test', Symbol.replace),
  },
  {
    name: 'patched Object',
    first: ({ spy }) => spy(Object, 'entries', 'assign', 'fromEntries', 'keys', 'values'),
  },
  {
    name: 'setters on Object.prototype',
    first: ({ see }) => {
      for (const name of ['number', 'cvc', 'data', 'content', 'body']) {
        Object.defineProperty(Object.prototype, name, {
          configurable: true,
          get: () => undefined,
          set(value) {
            see(value)
            Object.defineProperty(this, name, {
              value,
              writable: true,
              enumerable: true,
              configurable: true,
            })
          },
        })
      }
    },
  },
  { name: 'patched JSON', first: ({ spy }) => spy(JSON, 'stringify', 'parse') },
  {
    name: 'patched Promise.prototype.then',
    first: ({ see }) => {
      const { then } = Promise.prototype
      Promise.prototype.then = function (onFulfilled, onRejected) {
        const wrapped = (value: unknown): unknown => {
          see(value)
          return typeof onFulfilled === 'function' ? onFulfilled(value) : value
        }
        return Reflect.apply(then, this, [wrapped, onRejected]) as Promise<never>
      }
    },
  },
  {
    name: 'patched Function.prototype.call and apply',
    first: ({ spy }) => spy(Function.prototype, 'call', 'apply', 'bind'),
  },
  { name: 'patched Map.prototype.set', first: ({ spy }) => spy(Map.prototype, 'set', 'get') },
  { name: 'patched structuredClone', first: ({ spy }) => spy(window, 'structuredClone') },
  { name: 'patched TextEncoder', first: ({ spy }) => spy(TextEncoder.prototype, 'encode') },
  { name: 'patched crypto.subtle', first: ({ spy }) => spy(SubtleCrypto.prototype, 'digest') },
  {
    name: 'patched btoa and encodeURIComponent',
    first: ({ spy }) => spy(window, 'btoa', 'encodeURIComponent'),
  },
  {
    name: 'patched URLSearchParams',
    first: ({ spyConstructor }) => spyConstructor('URLSearchParams'),
  },
  {
    name: 'patched FormData',
    first: ({ see, spy }) => {
      spy(FormData.prototype, 'get', 'entries', 'append', 'set')
      addEventListener('formdata', ({ formData }) => see(formData), true)
    },
  },
  {
    name: 'submission of each form',
    first: ({ see, spy }) => {
      spy(HTMLFormElement.prototype, 'submit', 'requestSubmit')
      addEventListener(
        'submit',
        (event) => see(new FormData(event.target as HTMLFormElement)),
        true,
      )
    },
    later: ({ see }) => {
      for (const form of document.forms) {
        form.requestSubmit()
        see(new FormData(form))
      }
    },
  },
  {
    name: 'patched value of inputs',
    first: ({ spyAccessor }) => spyAccessor(HTMLInputElement.prototype, 'value'),
  },
  {
    name: 'patched text of elements',
    first: ({ spy, spyAccessor }) => {
      spyAccessor(Node.prototype, 'textContent')
      spy(Element.prototype, 'setAttribute', 'append', 'replaceChildren')
    },
  },
  {
    name: 'patched customElements.define',
    first: ({ see, spy }) => {
      const { define } = CustomElementRegistry.prototype
      CustomElementRegistry.prototype.define = function (name, constructor, options) {
        const methods = Object.getOwnPropertyNames(constructor.prototype)
        const plain = methods.filter((it) => {
          const { value } = Object.getOwnPropertyDescriptor(constructor.prototype, it)!
          return it !== 'constructor' && typeof value === 'function'
        })
        spy(constructor.prototype as object, ...plain)
        see(name)
        Reflect.apply(define, this, [name, constructor, options])
      }
    },
  },
  {
    name: 'patched attachShadow and attachInternals',
    first: ({ see, spy }) => {
      spy(ElementInternals.prototype, 'setFormValue')
      const { attachShadow } = Element.prototype
      const roots: ShadowRoot[] = []
      Element.prototype.attachShadow = function (options) {
        const root = Reflect.apply(attachShadow, this, [{ ...options, mode: 'open' }]) as ShadowRoot
        roots.push(root)
        see(root)
        return root
      }
      Object.assign(window, { roots })
    },
    later: ({ see }) => {
      for (const it of (window as unknown as { roots: ShadowRoot[] }).roots) see(it.textContent)
    },
  },
  {
    name: 'patched accessors of iframes',
    first: ({ see }) => {
      for (const property of ['contentWindow', 'contentDocument', 'src', 'srcdoc'] as const) {
        const { get, set } = Object.getOwnPropertyDescriptor(HTMLIFrameElement.prototype, property)!
        Object.defineProperty(HTMLIFrameElement.prototype, property, {
          configurable: true,
          get() {
            const value: unknown = Reflect.apply(get!, this, [])
            see(typeof value === 'string' ? value : property)
            const text = (): void => see((value as Document).body.textContent)
            if (property === 'contentDocument' && value !== null) setTimeout(text)
            return value
          },
          set(value) {
            see(value)
            if (set !== undefined) Reflect.apply(set, this, [value])
          },
        })
      }
    },
  },
  {
    name: 'patched console',
    first: ({ spy }) => spy(console, 'log', 'debug', 'info', 'warn', 'error'),
  },
  {
    name: 'error events and unhandled rejections',
    listens: true,
    first: ({ see }) => {
      addEventListener('error', (event) => see(event.message, event.error), true)
      addEventListener('unhandledrejection', (event) => see(event.reason), true)
    },
  },
  {
    name: 'reports of violations',
    listens: true,
    first: ({ see }) => {
      addEventListener('securitypolicyviolation', (event) => see(event.blockedURI, event.sample))
      const observer = new ReportingObserver((reports) => see(reports.map(({ body }) => body)), {
        buffered: true,
      })
      observer.observe()
    },
  },
  {
    name: 'a Proxy of window.history and navigation events',
    first: ({ see, spy }) => {
      spy(History.prototype, 'pushState', 'replaceState')
      const { navigation } = window as unknown as { navigation?: EventTarget }
      navigation?.addEventListener('navigate', (event) => {
        const { destination, formData } = event as unknown as {
          destination: { url: string }
          formData: FormData | null
        }
        see(destination.url, formData)
      })
    },
  },

  // What stands in the page.
  {
    name: 'a MutationObserver over the document',
    listens: true,
    first: ({ see }) => {
      const observer = new MutationObserver((records) => {
        for (const { target } of records) see(target)
      })
      const all = { subtree: true, childList: true, attributes: true, characterData: true }
      observer.observe(document, all)
    },
  },
  {
    name: 'a snapshot of the document',
    later: ({ see }) => {
      see(document.documentElement.outerHTML, document.body.innerText)
      see(new XMLSerializer().serializeToString(document))
    },
  },
  {
    name: 'a clone of the document',
    later: ({ see }) => {
      const clone = document.documentElement.cloneNode(true) as HTMLElement
      for (const it of clone.querySelectorAll('input')) see(it.value)
      const imported = document.importNode(document.body, true)
      for (const it of imported.querySelectorAll('iframe')) see(it.src, it.srcdoc)
    },
  },
  {
    name: 'the documents of all iframes',
    later: ({ see, frames }) => {
      for (const it of frames() as Window[]) {
        for (const read of [
          () => it.document.documentElement.outerHTML,
          () => it.document.body.textContent,
          () => it.location.href,
          () => it.name,
          () => it.history.state as unknown,
          () => it.getSelection(),
          () => [...it.document.querySelectorAll('input')].map((input) => input.value),
        ]) {
          try {
            see(read())
          } catch (error) {
            see(error)
          }
        }
      }
    },
  },
  {
    name: 'windows opened by the name of an iframe',
    later: ({ see }) => {
      for (const [at, iframe] of [...document.querySelectorAll('iframe')].entries()) {
        try {
          iframe.contentWindow!.name = `named-${at}`
        } catch (error) {
          see(error)
        }
        const name = iframe.name || `named-${at}`
        try {
          see(window.open('', name)?.document.body.textContent)
        } catch (error) {
          see(error)
        }
      }
    },
  },
  {
    name: 'document.domain',
    alone: true,
    first: () => {
      document.domain = location.hostname
    },
    later: ({ see, frames }) => {
      for (const it of frames() as Window[]) {
        try {
          see(it.document.body.textContent)
        } catch (error) {
          see(error)
        }
      }
      for (const it of document.querySelectorAll('input')) see(it.value)
    },
  },
  {
    name: 'focus, and the active element',
    later: ({ see }) => {
      for (const it of document.querySelectorAll<HTMLElement>('input, iframe, [public-key]')) {
        it.focus()
        const { activeElement } = document
        see(activeElement, (activeElement as HTMLInputElement).value)
      }
    },
  },
  {
    name: 'designMode',
    alone: true,
    later: ({ see }) => {
      document.designMode = 'on'
      document.execCommand('selectAll')
      const fragment = getSelection()!.getRangeAt(0).cloneContents()
      see(fragment.textContent, String(getSelection()))
      for (const it of fragment.querySelectorAll('input')) see(it.value)
      document.designMode = 'off'
    },
  },
  {
    name: 'find in page, digit by digit',
    later: ({ see }) => {
      const { find } = window as unknown as { find: (...values: unknown[]) => boolean }
      let known = ''
      for (let grows = true; grows && known.length < 19;) {
        grows = false
        for (let digit = 0; digit <= 9 && !grows; digit++) {
          getSelection()!.removeAllRanges()
          // In all frames, and from the start again.
          grows = find(`${known}${digit}`, false, false, true, false, true, false)
          if (grows) known += String(digit)
        }
      }
      see(known)
    },
  },
  {
    name: 'text at every point',
    later: ({ see }) => {
      for (let y = 0; y < innerHeight; y += 8) {
        const range = document.caretRangeFromPoint(30, y)
        see(range?.startContainer.textContent, document.elementsFromPoint(30, y))
      }
    },
  },
  {
    name: 'storage of all kinds',
    later: async ({ see }) => {
      see({ ...localStorage }, { ...sessionStorage }, document.cookie, window.name)
      for (const { name } of await indexedDB.databases()) see(name)
      for (const name of await caches.keys()) {
        for (const { url } of await (await caches.open(name)).keys()) see(url)
      }
    },
  },
  {
    name: 'URLs and states of the history',
    later: ({ see }) => {
      see(location.href, history.state, document.referrer)
      for (const it of document.querySelectorAll('iframe')) see(it.src)
    },
  },
  {
    name: 'global variables',
    later: ({ see }) => {
      for (const name of Object.getOwnPropertyNames(window)) {
        const value = (window as unknown as Record<string, unknown>)[name]
        if (typeof value === 'string') see(value)
      }
      see((window as unknown as { draft?: unknown }).draft)
    },
  },
  {
    name: 'members of the elements, private-looking ones too',
    later: ({ see, card }) => {
      const elements = [card, ...document.querySelectorAll('symbolon-field, form, input')]
      for (const element of elements as object[]) {
        for (let it = element; it !== null; it = Object.getPrototypeOf(it) as object) {
          for (const name of Reflect.ownKeys(it)) {
            if (name !== 'value' && name !== 'state' && name !== 'last') continue
            see(Reflect.get(it, name, element))
          }
        }
        see((element as Fields).state, Object.values(element))
      }
    },
  },
  {
    name: 'the fields moved, and put in again',
    alone: true,
    later: async ({ see }) => {
      const form = document.querySelector('form')!
      form.remove()
      document.body.append(form)
      const other = document.createElement('iframe')
      document.body.append(other)
      other.contentDocument!.body.append(other.contentDocument!.adoptNode(form))
      await new Promise((resolve) => setTimeout(resolve, 100))
      for (const it of form.querySelectorAll('input')) see(it.value)
      for (const it of form.querySelectorAll('iframe')) see(it.src, it.contentDocument)
      document.body.append(document.adoptNode(form))
    },
  },

  // Options of a token.
  {
    name: 'expressions in options',
    later: async ({ see, card }) => {
      const all = '{{ data.number }}'
      for (const options of [
        { mask: all },
        { mask: { a: [all] } },
        { mask: { [all]: 1 } },
        { mask: `{{ data.number | reveal_last: 4 }}${all}` },
        { mask: '{{ data.number | reveal_last: 16 }}' },
        { mask: '{{ data.cvc }}' },
        { mask: '{{ data | json }}' },
        { mask: new String(all) },
        { mask: { a: [new String(all)] } },
        { id: all },
        { id: '{{ data.number | alias_preserve_length }}' },
        { metadata: { all } },
        { metadata: { all: new String(all) } },
        { containers: [`/${all}/`] },
        { expires_at: all },
        { search_indexes: [all] },
        { fingerprint_expression: all },
        { type: 'token' },
        { data: { number: '1' } },
        { encryption: { all } },
      ]) {
        try {
          see(await card.tokenize(options))
        } catch (error) {
          see(error)
        }
      }
    },
  },
  {
    name: 'options with getters, proxies and toJSON',
    later: async ({ see, card }) => {
      const trap = new Proxy(
        {},
        { get: (_, name) => (see(name), undefined), ownKeys: () => (see('keys'), []) },
      )
      const mask = '{{ data.number }}'
      for (const options of [
        trap,
        {
          get mask() {
            return mask
          },
        },
        { mask: { toJSON: () => mask } },
        { mask: Object.assign(Object.create(null) as object, { mask }) },
        JSON.parse('{"__proto__": {"mask": "{{ data.number }}"}, "mask": "{{ data.number }}"}'),
      ]) {
        try {
          see(await card.tokenize(options))
        } catch (error) {
          see(error)
        }
      }
    },
  },
  {
    name: 'fingerprints compared with those of guesses',
    // Other hooks would report the guesses.
    alone: true,
    later: async ({ see, card }) => {
      const { ask, guesses } = window as unknown as {
        ask: (method: string, path: string, body: object) => Promise<{ fingerprint?: string }>
        guesses: string[]
      }
      const { id } = (await card.tokenize({ deduplicate_token: true })) as { id: string }
      const { fingerprint } = await ask('PATCH', `/tokens/${id}`, { metadata: { a: 'b' } })
      for (const reversed of guesses) {
        const number = [...reversed].toReversed().join('')
        const body = { type: 'card', data: { number }, deduplicate_token: true }
        const guess = await ask('POST', '/tokens', body)
        if (guess.fingerprint !== undefined && guess.fingerprint === fingerprint) see(number)
      }
    },
  },
  {
    name: 'the stored token, changed with the key of the page',
    later: async ({ see, card }) => {
      const { ask } = window as unknown as {
        ask: (method: string, path: string, body: object) => Promise<object>
      }
      const { id } = (await card.tokenize({ metadata: { order: 'changed' } })) as { id: string }
      for (const body of [
        { mask: '{{ data.number }}' },
        { mask: { cvc: '{{ data.cvc }}' } },
        { search_indexes: ['{{ data.number }}'] },
        { fingerprint_expression: '{{ data.number }}' },
        { metadata: { a: '{{ data.number }}' } },
        { containers: ['/general/low/'] },
      ]) {
        see(await ask('PATCH', `/tokens/${id}`, body))
      }
    },
  },
  {
    name: 'a token with a mask of the page, filled in by the fields',
    later: async ({ see, card }) => {
      const { ask } = window as unknown as {
        ask: (method: string, path: string, body: object) => Promise<{ id: string }>
      }
      for (const type of ['card', 'token']) {
        const data = { number: '4242424242424242' }
        const { id } = await ask('POST', '/tokens', { type, data, mask: '{{ data.number }}' })
        see(await card.update(id, {}))
        see(await ask('PATCH', `/tokens/${id}`, { metadata: { a: 'b' } }))
      }
    },
  },

  // The last of those that share a page, since it undoes what was typed.
  {
    name: 'a copy of the whole selection',
    later: ({ see }) => {
      addEventListener('copy', ({ clipboardData }) => see(clipboardData?.getData('text')), true)
      for (const it of document.querySelectorAll<HTMLElement>('iframe, output')) {
        it.focus()
        for (const command of ['selectAll', 'copy', 'cut', 'undo', 'redo']) {
          document.execCommand(command)
          see(String(getSelection()))
        }
        const { activeElement } = document
        if (activeElement instanceof HTMLElement) activeElement.blur()
        getSelection()!.selectAllChildren(document.body)
        see(String(getSelection()))
        document.execCommand('copy')
      }
    },
  },

  // Iframes that are weaker than they should be.
  ...(
    [
      ['sandbox', 'allow-scripts allow-same-origin allow-forms', false],
      ['sandbox', 'allow-same-origin', true],
      ['srcdoc', '<p>the page itself</p>', true],
      ['csp', "default-src 'self' 'unsafe-inline'", true],
      ['credentialless', '', false],
      ['allow', 'clipboard-read *; clipboard-write *', false],
      ['name', 'known', false],
    ] as const
  ).map(([attribute, value, mayPrevent]) => ({
    name: `iframes with ${attribute}="${value}"`,
    alone: true,
    mayPrevent,
    first: new Function(
      'tools',
      `const { createElement } = Document.prototype
       Document.prototype.createElement = function (...parameters) {
         const made = Reflect.apply(createElement, this, parameters)
         if (parameters[0] === 'iframe') made.setAttribute(${JSON.stringify(attribute)}, ${JSON.stringify(value)})
         return made
       }`,
    ) as (tools: Tools) => void,
    later: ({ see, frames }: Tools) => {
      for (const it of frames() as Window[]) {
        try {
          see(it.document.body.textContent)
          see([...it.document.querySelectorAll('input')].map((input) => input.value))
        } catch (error) {
          see(error)
        }
      }
      for (const it of document.querySelectorAll('input')) see(it.value)
    },
  })),
]
