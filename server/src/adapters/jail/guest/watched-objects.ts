/**
 * Detects changes of objects that all runs share: globals, built-in classes, exports of modules. Compares own
 * properties with an earlier state, and reads no deeper than requested.
 *
 * Uses no function that code may have replaced in the meantime.
 */
const { getOwnPropertyDescriptor, getPrototypeOf, isExtensible, ownKeys } = Reflect

interface WatchedObject {
  readonly name: string
  readonly object: object
  /** Keys to leave out; null to notice no new keys either. */
  readonly skipped: ReadonlySet<PropertyKey> | null
  prototype: object | null
  isExtensible: boolean
  /** Number of own keys. */
  count: number
  /** Keys of data properties, and their values. */
  keys: PropertyKey[]
  values: unknown[]
  /** Keys of accessors, and their descriptors. */
  accessors: PropertyKey[]
  descriptors: PropertyDescriptor[]
}

/** Whether Node itself adds a property when it is first needed. */
type IsLate = (key: PropertyKey, value: unknown) => boolean

interface DataProperties {
  readonly keys: readonly PropertyKey[]
  readonly descriptors: (PropertyDescriptor | undefined)[]
}

const NONE: ReadonlySet<PropertyKey> = new Set()

export class WatchedObjects {
  readonly #watched: WatchedObject[] = []
  readonly #known = new Map<object, WatchedObject>()
  readonly #probes: { name: string; read: () => unknown; value: unknown }[] = []
  readonly #isLate: IsLate
  /** Objects of which code has defined a property, with their data properties as they were before. */
  readonly #redefined = new Map<WatchedObject, DataProperties>()
  // Bound, because these run whenever code defines a property.
  readonly #watchedOf = this.#known.get.bind(this.#known)
  readonly #isRedefined = this.#redefined.has.bind(this.#redefined)
  readonly #keepRedefined = this.#redefined.set.bind(this.#redefined)

  constructor(isLate: IsLate = () => false) {
    this.#isLate = isLate
  }

  /** Watches own properties, except `skipped`; with null only existing functions and accessors. */
  add(name: string, object: object, skipped: ReadonlySet<PropertyKey> | null = NONE): void {
    if (this.#known.has(object)) return
    const it: WatchedObject = {
      name,
      object,
      skipped,
      prototype: null,
      isExtensible: true,
      count: 0,
      keys: [],
      values: [],
      accessors: [],
      descriptors: [],
    }
    this.#known.set(object, it)
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

  /** Whether the object had the property when its state was last accepted. */
  hasProperty(object: object, key: PropertyKey): boolean {
    const it = this.#known.get(object)
    return it !== undefined && (it.keys.includes(key) || it.accessors.includes(key))
  }

  /**
   * Must be called before code defines a property of any object: then flags of its properties can change. Reading the flags
   * of all objects after each run would take too long.
   */
  beforeDefining(object: object): void {
    const it = this.#watchedOf(object)
    if (it === undefined || this.#isRedefined(it)) return
    const { keys } = it
    const descriptors: DataProperties['descriptors'] = []
    for (let n = 0; n < keys.length; n++) {
      descriptors[n] = getOwnPropertyDescriptor(object, keys[n]!)
    }
    this.#keepRedefined(it, { keys, descriptors })
  }

  /** Accepts the present state. */
  accept(): void {
    this.#redefined.clear()
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
    return this.#changedFlag()
  }

  #changedFlag(): string | null {
    for (const [{ name, object }, { keys, descriptors }] of this.#redefined) {
      for (let n = 0; n < keys.length; n++) {
        const [now, then] = [getOwnPropertyDescriptor(object, keys[n]!), descriptors[n]]
        if (now !== undefined && then !== undefined && hasOtherFlags(now, then))
          return `the flags of ${name}.${String(keys[n])}`
      }
    }
    return null
  }

  #read(it: WatchedObject): void {
    const all = ownKeys(it.object)
    it.prototype = getPrototypeOf(it.object)
    it.isExtensible = isExtensible(it.object)
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
    if (isExtensible(it.object) !== it.isExtensible) return '[[Extensible]]'
    if (it.skipped === null) return null
    if (getPrototypeOf(it.object) !== it.prototype) return '__proto__'
    const all = ownKeys(it.object)
    if (all.length === it.count) return null
    for (let n = 0; n < all.length; n++) {
      const key = all[n]!
      const isNew = !keys.includes(key) && !accessors.includes(key) && !it.skipped.has(key)
      if (isNew && !this.#isLate(key, object[key])) return key
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

function hasOtherFlags(now: PropertyDescriptor, then: PropertyDescriptor): boolean {
  return (
    now.writable !== then.writable ||
    now.enumerable !== then.enumerable ||
    now.configurable !== then.configurable
  )
}
