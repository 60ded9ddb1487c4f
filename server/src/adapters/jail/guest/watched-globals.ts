import { beforeFirstFetch, lateGlobalsOf, LOADED_LATE } from './late-globals.ts'
import { GROUP_STATE } from './output-state.ts'
import { beforeDefinitions } from './property-definitions.ts'
import { WatchedObjects } from './watched-objects.ts'

/**
 * State that the runs of a reactor share besides the module variables of its code: globals, built-in classes, `process`
 * and the modules handed to the code. A run must leave it unchanged.
 */
export class WatchedGlobals {
  readonly #objects = new WatchedObjects(isLate)
  readonly #imports: string[] = []
  readonly #loaded = new Set<string>()
  /** A change found before a package was loaded. */
  #earlier: string | null = null

  /** Records the present state of everything that is loaded already. */
  begin(): void {
    beforeDefinitions((it) => this.#objects.beforeDefining(it))
    beforeFirstFetch((names) => this.#addLate(names))
    for (const name of Reflect.ownKeys(globalThis)) {
      if (typeof name !== 'string' || LOADED_LATE.has(name)) continue
      this.#addGlobal(name)
    }
    this.#objects.add('globalThis', globalThis, new Set(LOADED_LATE))
    for (const [name, it] of Object.entries(HIDDEN_CLASSES)) this.#objects.add(name, it)
    this.#objects.add('crypto.subtle', crypto.subtle)
    this.#addProcess()
  }

  /** Also watches objects that the code names and that Node loads at first use. */
  beginFor(code: string): void {
    this.#addLate(lateGlobalsOf(code))
    if (code.includes('Segmenter')) this.#addSegments()
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

  /** Watches the own properties of an object that the code gets, and of objects in it. */
  addObject(name: string, object: object): void {
    this.#objects.add(name, object)
    for (const key of ownKeys(object)) {
      const it: unknown = getOwnPropertyDescriptor(object, key)?.value
      if (hasOwnMembers(it) || isPlain(it)) this.addObject(`${name}.${String(key)}`, it)
    }
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

  /** Reading the first of these globals makes the dispatcher of `fetch`, unless code has set one. */
  #addLate(names: readonly string[]): void {
    if (names.includes('Headers')) {
      const set = DISPATCHERS.find((it) => this.#isNewGlobal(it))
      if (set !== undefined) this.#earlier ??= `globalThis.${String(set)}`
    }
    for (const it of names) this.#addGlobal(it)
    if (!names.includes('Headers')) return
    for (const it of DISPATCHERS) {
      this.#objects.probe(`globalThis.${String(it)}`, () => Reflect.get(globalThis, it))
    }
  }

  #isNewGlobal(key: PropertyKey): boolean {
    const exists = getOwnPropertyDescriptor(globalThis, key) !== undefined
    return exists && !this.#objects.hasProperty(globalThis, key)
  }

  #addSegments(): void {
    const segments = new Intl.Segmenter().segment('')
    this.#addPrototypes('segments', segments)
    this.#addPrototypes('an iterator of segments', segments[Symbol.iterator]())
  }

  #addProcess(): void {
    this.#objects.add('process', process, PROCESS_STATE)
    for (const key of ownKeys(process)) {
      if (PROCESS_STATE.has(key) || CHANGING_LISTS.has(key)) continue
      const it: unknown = getOwnPropertyDescriptor(process, key)?.value
      if (hasOwnMembers(it) || isPlain(it) || Array.isArray(it)) {
        this.#objects.add(`process.${String(key)}`, it)
      }
    }
    this.#objects.probe('process.exitCode', () => process.exitCode)
    this.#objects.probe('process.sourceMapsEnabled', () => process.sourceMapsEnabled)
    this.#addPrototypes('process', process)
    this.#addPrototypes('process.stdout', process.stdout)
    this.#objects.probe('process.listeners', listenersOfProcess)
    this.#objects.probe('process.env', () => stringify(process.env))
    this.#objects.add('process.stdout', process.stdout, STREAM_STATE)
    this.#objects.add('process.stderr', process.stderr, STREAM_STATE)
  }

  /** Watches all prototypes of an object that have no global of their own. */
  #addPrototypes(name: string, object: object): void {
    const prototype = getPrototypeOf(object)
    if (prototype === null || this.#objects.isWatched(prototype)) return
    this.#objects.add(`the prototype of ${name}`, prototype)
    this.#addPrototypes(`the prototype of ${name}`, prototype)
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
const { apply, getOwnPropertyDescriptor, getPrototypeOf, ownKeys } = Reflect

function isObject(it: unknown): it is object {
  return (typeof it === 'object' && it !== null) || typeof it === 'function'
}

function isPlain(it: unknown): it is object {
  if (typeof it !== 'object' || it === null) return false
  const prototype = getPrototypeOf(it)
  return prototype === null || prototype === Object.prototype
}

/** Whether it is a function with properties that functions do not have. */
function hasOwnMembers(it: unknown): it is Function {
  return typeof it === 'function' && ownKeys(it).some((key) => !OF_FUNCTIONS.has(key))
}

const OF_FUNCTIONS: ReadonlySet<PropertyKey> = new Set([
  'arguments',
  'caller',
  'length',
  'name',
  'prototype',
])

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

/** Where Node's `fetch` keeps the dispatcher that it makes with its first request. */
const DISPATCHERS = ['1', '2'].map((it) => Symbol.for(`undici.globalDispatcher.${it}`))

/** Whether the property is the dispatcher that Node's `fetch` or the package undici made. */
function isLate(key: PropertyKey, value: unknown): boolean {
  if (!DISPATCHERS.includes(key as symbol) || !isObject(value)) return false
  const made: unknown = Reflect.get(value, 'constructor')
  return typeof made === 'function' && apply(toText, made, []).includes('extends DispatcherBase')
}

const toText: () => string = Reflect.get(Function.prototype, 'toString')

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
  PatternIterator: getPrototypeOf(''.matchAll(/a/g))!,
  IteratorHelper: getPrototypeOf([].values().map(() => {}))!,
  WrappedIterator: getPrototypeOf(Iterator.from({ next: () => ({ done: true, value: null }) }))!,
  AsyncIterator: getPrototypeOf(getPrototypeOf(getPrototypeOf((async function* () {})())!)!)!,
  TypedArray: getPrototypeOf(Int8Array)!,
  'TypedArray.prototype': getPrototypeOf(Int8Array.prototype)!,
}

/** Properties of `process` that change by themselves, are slow to load, or are compared by their content. */
const PROCESS_STATE: ReadonlySet<PropertyKey> = new Set([
  '_events',
  '_eventsCount',
  '_exiting',
  'exitCode',
  'sourceMapsEnabled',
  'finalization',
  'allowedNodeEnvironmentFlags',
  'report',
  'stdin',
])

/** Lists of `process` that grow when a module is loaded. */
const CHANGING_LISTS: ReadonlySet<PropertyKey> = new Set(['moduleLoadList', 'env'])

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
  ['crypto', 'getFips()', (it: typeof import('node:crypto')) => it.getFips()],
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
  axios: ['defaults', 'interceptors', 'HttpStatusCode'],
  'crypto-js': ['algo'],
  lodash: ['templateSettings', 'memoize'],
  'node-forge': ['options', 'oids'],
}

const PACKAGE_NAME = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/
