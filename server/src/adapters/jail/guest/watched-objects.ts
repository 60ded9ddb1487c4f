/**
 * Detects changes of objects that all runs share: globals, built-in classes, exports of modules. Compares own
 * properties with an earlier state, and reads no deeper than requested.
 *
 * Uses no function that code may have replaced in the meantime.
 */
const { getOwnPropertyDescriptor, getPrototypeOf, ownKeys } = Reflect

interface WatchedObject {
  readonly name: string
  readonly object: object
  /** Keys to leave out; null to notice no new keys either. */
  readonly skipped: ReadonlySet<PropertyKey> | null
  prototype: object | null
  /** Number of own keys. */
  count: number
  /** Keys of data properties, and their values. */
  keys: PropertyKey[]
  values: unknown[]
  /** Keys of accessors, and their descriptors. */
  accessors: PropertyKey[]
  descriptors: PropertyDescriptor[]
}

const NONE: ReadonlySet<PropertyKey> = new Set()

export class WatchedObjects {
  readonly #watched: WatchedObject[] = []
  readonly #known = new Set<object>()
  readonly #probes: { name: string; read: () => unknown; value: unknown }[] = []
  readonly #late: ReadonlySet<PropertyKey>

  /** `late` are keys that Node itself adds to an object when they are first needed. */
  constructor(late: readonly PropertyKey[] = []) {
    this.#late = new Set(late)
  }

  /** Watches own properties, except `skipped`; with null only existing functions and accessors. */
  add(name: string, object: object, skipped: ReadonlySet<PropertyKey> | null = NONE): void {
    if (this.#known.has(object)) return
    this.#known.add(object)
    const it: WatchedObject = {
      name,
      object,
      skipped,
      prototype: null,
      count: 0,
      keys: [],
      values: [],
      accessors: [],
      descriptors: [],
    }
    this.#read(it)
    this.#watched.push(it)
  }

  /** Watches a function or class: its own properties, and those of its prototype. */
  addClass(name: string, it: Function): void {
    this.add(name, it)
    const prototype: unknown = getOwnPropertyDescriptor(it, 'prototype')?.value
    if (typeof prototype === 'object' && prototype !== null)
      this.add(`${name}.prototype`, prototype)
  }

  /** Watches what `read` returns, for state that is not in a property. */
  probe(name: string, read: () => unknown): void {
    this.#probes.push({ name, read, value: read() })
  }

  isWatched(object: object): boolean {
    return this.#known.has(object)
  }

  /** Accepts the present state. */
  accept(): void {
    for (let n = 0; n < this.#watched.length; n++) {
      const it = this.#watched[n]!
      if (this.#changeIn(it) !== null) this.#read(it)
    }
    for (const it of this.#probes) it.value = it.read()
  }

  /** Returns the name of a property that has changed; null if none has. */
  change(): string | null {
    for (let n = 0; n < this.#watched.length; n++) {
      const it = this.#watched[n]!
      const key = this.#changeIn(it)
      if (key !== null) return `${it.name}.${String(key)}`
    }
    for (let n = 0; n < this.#probes.length; n++) {
      const { name, read, value } = this.#probes[n]!
      if (read() !== value) return name
    }
    return null
  }

  #read(it: WatchedObject): void {
    const all = ownKeys(it.object)
    it.prototype = getPrototypeOf(it.object)
    it.count = all.length
    it.keys = []
    it.values = []
    it.accessors = []
    it.descriptors = []
    for (const key of all) {
      if (it.skipped?.has(key)) continue
      const descriptor = getOwnPropertyDescriptor(it.object, key)!
      if (!('value' in descriptor)) {
        it.accessors.push(key)
        it.descriptors.push(descriptor)
      } else if (it.skipped !== null || typeof descriptor.value === 'function') {
        it.keys.push(key)
        it.values.push(descriptor.value)
      }
    }
  }

  #changeIn(it: WatchedObject): PropertyKey | null {
    const { keys, values, accessors, descriptors } = it
    const object = it.object as Record<PropertyKey, unknown>
    // Values first: reading all values takes less time than reading all keys.
    for (let n = 0; n < keys.length; n++) {
      const now = object[keys[n]!]
      const then = values[n]
      if (now !== then && (now === now || then === then)) return keys[n]!
    }
    for (let n = 0; n < accessors.length; n++) {
      if (isReplaced(it.object, accessors[n]!, descriptors[n]!)) return accessors[n]!
    }
    if (it.skipped === null) return null
    if (getPrototypeOf(it.object) !== it.prototype) return '__proto__'
    const all = ownKeys(it.object)
    if (all.length === it.count) return null
    for (let n = 0; n < all.length; n++) {
      const key = all[n]!
      const isNew = !keys.includes(key) && !accessors.includes(key) && !it.skipped.has(key)
      if (isNew && !this.#late.has(key)) return key
    }
    if (all.length < it.count) return 'a property'
    // Only keys that Node added late: watch those, too, from now on.
    this.#read(it)
    return null
  }
}

/** Whether an accessor was replaced, unless by the value it returned: Node's own accessors do that at first use. */
function isReplaced(object: object, key: PropertyKey, then: PropertyDescriptor): boolean {
  const now = getOwnPropertyDescriptor(object, key)
  if (now === undefined) return true
  if ('value' in now) return then.get === undefined || now.value !== then.get.call(object)
  return now.get !== then.get || now.set !== then.set
}
