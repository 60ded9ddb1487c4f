import { GROUP_STATE } from './output-state.ts'
import { WatchedObjects } from './watched-objects.ts'

/**
 * State that the runs of a reactor share besides the module variables of its code: globals, built-in classes, `process`
 * and the modules handed to the code. A run must leave it unchanged.
 */
export class WatchedGlobals {
  readonly #objects = new WatchedObjects(LATE)
  readonly #imports: string[] = []
  readonly #loaded = new Set<string>()
  /** A change found before a package was loaded. */
  #earlier: string | null = null

  /** Records the present state of everything that is loaded already. */
  begin(): void {
    for (const name of Reflect.ownKeys(globalThis)) {
      if (typeof name !== 'string' || LOADED_LATE.has(name)) continue
      this.#addGlobal(name)
    }
    this.#objects.add('globalThis', globalThis, new Set(LOADED_LATE))
    for (const [name, it] of Object.entries(HIDDEN_CLASSES)) this.#objects.add(name, it)
    this.#addProcess()
  }

  /** Also watches globals that the code names and that Node loads at first use. */
  beginFor(code: string): void {
    for (const name of LOADED_LATE) if (code.includes(name)) this.#addGlobal(name)
  }

  /** Accepts the state after loading the code: every process of the code makes these changes. */
  async accept(): Promise<void> {
    await this.addImports()
    this.#objects.accept()
    this.#earlier = null
  }

  /**
   * Loads a package with `load`, and accepts the changes made meanwhile: packages loaded late may define globals, and do so
   * only once.
   */
  loading<Result>(name: string, load: () => Result): Result {
    if (this.#loaded.has(name)) return load()
    this.#loaded.add(name)
    this.#earlier ??= this.#objects.change()
    try {
      return load()
    } finally {
      this.#objects.accept()
    }
  }

  /** Returns the name of a change; null if there is none. */
  change(): string | null {
    return this.#earlier ?? this.#objects.change()
  }

  /** Watches the value that `read` returns. */
  probe(name: string, read: () => unknown): void {
    this.#objects.probe(name, read)
  }

  /** Watches a built-in module that the code gets. */
  addBuiltIn(name: string, module: unknown): void {
    this.#addModule(name, module, 2)
    for (const [from, probe, read] of PROBES) {
      if (from === name) this.#objects.probe(`${name}.${probe}`, () => readable(read, module))
    }
  }

  /** Watches the functions of a package that the code gets, and its known settings. */
  addPackage(name: string, exported: unknown): void {
    if (!isObject(exported) || this.#objects.isWatched(exported)) return
    for (const setting of PACKAGE_SETTINGS[name] ?? []) {
      const it: unknown = Reflect.get(exported, setting)
      if (isObject(it)) this.#addDeeply(`${name}.${setting}`, it, 4)
    }
    this.#addExports(name, exported, 2)
  }

  /** Watches a package that the code imports, once it has been evaluated. */
  imported(url: string): void {
    this.#imports.push(url)
  }

  async addImports(): Promise<void> {
    while (this.#imports.length > 0) {
      const url = this.#imports.pop()!
      const exported: unknown = await import(url).catch(() => null)
      const name = PACKAGE_NAME.exec(url)?.[1] ?? url
      if (isObject(exported)) this.addPackage(name, Reflect.get(exported, 'default') ?? exported)
    }
  }

  #addGlobal(name: string): void {
    const it: unknown = Reflect.get(globalThis, name)
    if (it === globalThis || it === process || !isObject(it)) return
    if (typeof it === 'function') this.#objects.addClass(name, it)
    else this.#objects.add(name, it, name === 'console' ? CONSOLE_STATE : undefined)
    // Namespaces of classes.
    if (name !== 'Intl' && name !== 'WebAssembly') return
    for (const part of Object.getOwnPropertyNames(it)) {
      const inner: unknown = Reflect.get(it, part)
      if (typeof inner === 'function') this.#objects.addClass(`${name}.${part}`, inner)
    }
  }

  #addProcess(): void {
    this.#objects.add('process', process, PROCESS_STATE)
    this.#objects.probe('process.listeners', listenersOfProcess)
    this.#objects.probe('process.env', () => stringify(process.env))
    this.#objects.add('process.stdout', process.stdout, STREAM_STATE)
    this.#objects.add('process.stderr', process.stderr, STREAM_STATE)
  }

  /** Watches a module and, to some depth, the plain objects in it. */
  #addModule(name: string, it: unknown, depth: number): void {
    if (!isObject(it) || it === process || this.#objects.isWatched(it)) return
    if (isAgent(it)) return this.#addDeeply(name, it, 2, AGENT_STATE)
    if (typeof it === 'function') this.#objects.addClass(name, it)
    else this.#objects.add(name, it, name === 'console' ? CONSOLE_STATE : undefined)
    if (depth === 0) return
    for (const key of Object.keys(it)) {
      // Reading these would load modules that may never be used.
      if (LOADED_LATE.has(key)) continue
      const member: unknown = Reflect.get(it, key)
      if (typeof member === 'function' || isPlain(member) || isAgent(member)) {
        this.#addModule(`${name}.${key}`, member, depth - 1)
      }
    }
  }

  #addExports(name: string, it: object, depth: number): void {
    if (this.#objects.isWatched(it)) return
    this.#objects.add(name, it, null)
    if (typeof it === 'function') this.#addPrototype(name, it)
    if (depth === 0) return
    for (const key of Object.keys(it)) {
      const member: unknown = Reflect.get(it, key)
      if (typeof member === 'function') this.#addPrototype(`${name}.${key}`, member)
      else if (isPlain(member)) this.#addExports(`${name}.${key}`, member, depth - 1)
    }
  }

  #addPrototype(name: string, it: Function): void {
    const prototype: unknown = Reflect.getOwnPropertyDescriptor(it, 'prototype')?.value
    if (!isObject(prototype) || Reflect.ownKeys(prototype).length < 2) return
    this.#objects.add(`${name}.prototype`, prototype, null)
  }

  #addDeeply(
    name: string,
    it: object,
    depth: number,
    skipped: ReadonlySet<PropertyKey> = new Set(),
  ): void {
    if (this.#objects.isWatched(it)) return
    this.#objects.add(name, it, skipped)
    if (depth === 0) return
    for (const key of Object.keys(it)) {
      const member: unknown = Reflect.get(it, key)
      const isInner = typeof member === 'object' && member !== null && !skipped.has(key)
      if (isInner) this.#addDeeply(`${name}.${key}`, member, depth - 1)
    }
  }
}

/** Returns null if the level refuses the function. */
function readable(read: (module: never) => unknown, module: unknown): unknown {
  try {
    return read(module as never)
  } catch {
    return null
  }
}

const { stringify } = JSON
const { getPrototypeOf } = Reflect

function isObject(it: unknown): it is object {
  return (typeof it === 'object' && it !== null) || typeof it === 'function'
}

function isPlain(it: unknown): it is object {
  if (typeof it !== 'object' || it === null) return false
  const prototype = getPrototypeOf(it)
  return prototype === null || prototype === Object.prototype
}

/** Whether it is an agent of `http` or `https`, which has no class in common with anything else. */
function isAgent(it: unknown): it is object {
  return isObject(it) && 'maxFreeSockets' in it && 'freeSockets' in it
}

/** Returns events with the numbers of their listeners, as text. */
function listenersOfProcess(): string {
  let text = ''
  const names = eventNames()
  for (let n = 0; n < names.length; n++) {
    const listeners = rawListeners(names[n]!)
    text += `${String(names[n])} `
    for (let m = 0; m < listeners.length; m++) text += `${numberOf(listeners[m]!)} `
  }
  return text
}

const eventNames = process.eventNames.bind(process)
const rawListeners = process.rawListeners.bind(process)

/** Numbers functions in the order in which they were first seen. */
const numberOf = ((): ((it: Function) => number) => {
  const numbers = new WeakMap<Function, number>()
  const [get, set] = [numbers.get.bind(numbers), numbers.set.bind(numbers)]
  let last = 0
  return (it) => {
    const known = get(it)
    if (known !== undefined) return known
    set(it, ++last)
    return last
  }
})()

/** Globals that Node loads when they are first read: 64 ms and 4 MB for those of `fetch`, 3 ms for streams. */
const LOADED_LATE: ReadonlySet<string> = new Set([
  'ByteLengthQueuingStrategy',
  'CloseEvent',
  'CompressionStream',
  'CountQueuingStrategy',
  'DecompressionStream',
  'ErrorEvent',
  'EventSource',
  'FormData',
  'Headers',
  'MessageEvent',
  'ReadableByteStreamController',
  'ReadableStream',
  'ReadableStreamBYOBReader',
  'ReadableStreamBYOBRequest',
  'ReadableStreamDefaultController',
  'ReadableStreamDefaultReader',
  'Request',
  'Response',
  'Storage',
  'TextDecoderStream',
  'TextEncoderStream',
  'TransformStream',
  'TransformStreamDefaultController',
  'WebSocket',
  'WritableStream',
  'WritableStreamDefaultController',
  'WritableStreamDefaultWriter',
  'localStorage',
  'sessionStorage',
])

/** Where Node's `fetch` keeps the dispatcher that it makes with its first request. */
const LATE = ['1', '2'].map((it) => Symbol.for(`undici.globalDispatcher.${it}`))

/** Classes and prototypes without a global of their own. */
const HIDDEN_CLASSES: Readonly<Record<string, object>> = {
  AsyncFunction: getPrototypeOf(async () => {})!,
  GeneratorFunction: getPrototypeOf(function* () {})!,
  Generator: getPrototypeOf(getPrototypeOf((function* () {})())!)!,
  AsyncGenerator: getPrototypeOf(getPrototypeOf((async function* () {})())!)!,
  ArrayIterator: getPrototypeOf([][Symbol.iterator]())!,
  MapIterator: getPrototypeOf(new Map()[Symbol.iterator]())!,
  SetIterator: getPrototypeOf(new Set()[Symbol.iterator]())!,
  StringIterator: getPrototypeOf(''[Symbol.iterator]())!,
  TypedArray: getPrototypeOf(Int8Array)!,
  'TypedArray.prototype': getPrototypeOf(Int8Array.prototype)!,
}

/** Properties of `process` that change by themselves, are slow to load, or are compared by their content. */
const PROCESS_STATE: ReadonlySet<PropertyKey> = new Set([
  '_events',
  '_eventsCount',
  '_exiting',
  'exitCode',
  'finalization',
  'allowedNodeEnvironmentFlags',
  'report',
  'stdin',
])

/** Restored for each run, and so not compared. */
const CONSOLE_STATE: ReadonlySet<PropertyKey> = new Set(GROUP_STATE)

/** Likewise. */
const STREAM_STATE: ReadonlySet<PropertyKey> = new Set([
  '_events',
  '_eventsCount',
  '_writableState',
])

/** Connections of an agent, which end with the run, and its TLS sessions. */
const AGENT_STATE: ReadonlySet<PropertyKey> = new Set([
  'sockets',
  'freeSockets',
  'requests',
  'totalSocketCount',
  '_sessionCache',
])

/** Settings of built-in modules that are not plain properties. */
const PROBES: readonly (readonly [module: string, name: string, read: (it: never) => unknown])[] = [
  ['dns', 'getDefaultResultOrder()', (it: typeof import('node:dns')) => it.getDefaultResultOrder()],
  ['dns', 'getServers()', (it: typeof import('node:dns')) => it.getServers().join()],
  ['events', 'defaultMaxListeners', (it: typeof import('node:events')) => it.defaultMaxListeners],
  ['http', 'globalAgent', (it: typeof import('node:http')) => it.globalAgent],
  ['net', 'autoSelectFamily', (it: typeof import('node:net')) => it.getDefaultAutoSelectFamily()],
  [
    'stream',
    'highWaterMark',
    (it: typeof import('node:stream')) => it.getDefaultHighWaterMark(false),
  ],
  ['stream', 'objectMark', (it: typeof import('node:stream')) => it.getDefaultHighWaterMark(true)],
  [
    'util',
    'inspect.defaultOptions',
    (it: typeof import('node:util')) => stringify(it.inspect.defaultOptions),
  ],
]

/** Settings of packages that code changes in good faith, and that requests then carry. */
const PACKAGE_SETTINGS: Readonly<Record<string, readonly string[]>> = {
  axios: ['defaults', 'interceptors'],
  lodash: ['templateSettings'],
  'node-forge': ['options'],
}

const PACKAGE_NAME = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/
