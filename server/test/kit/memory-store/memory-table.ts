import type { StoredApplicationKey } from '../../../src/ports/stored.ts'
import type { Page, PageRequest } from '../../../src/ports/store.ts'

/** A map of one kind of item per tenant, in which every change can be undone. */
export class MemoryTable<Item> {
  readonly #tenants = new Map<string, Map<string, Item>>()
  readonly #undo: (() => void)[]

  /** Tables that share `undo` are undone together. */
  constructor(undo: (() => void)[]) {
    this.#undo = undo
  }

  find(tenantId: string, key: string): Item | null {
    return this.#tenants.get(tenantId)?.get(key) ?? null
  }

  all(tenantId: string): Item[] {
    return [...(this.#tenants.get(tenantId)?.values() ?? [])]
  }

  keys(tenantId: string): string[] {
    return [...(this.#tenants.get(tenantId)?.keys() ?? [])]
  }

  *everywhere(): Iterable<[tenantId: string, item: Item]> {
    for (const [tenantId, items] of this.#tenants) {
      for (const item of items.values()) yield [tenantId, item]
    }
  }

  put(tenantId: string, key: string, item: Item): void {
    this.#rememberWay(tenantId, key)
    this.#set(tenantId, key, item)
  }

  delete(tenantId: string, key: string): void {
    if (!this.#tenants.has(tenantId)) return
    this.#rememberWay(tenantId, key)
    this.#remove(tenantId, key)
  }

  #set(tenantId: string, key: string, item: Item): void {
    const items = this.#tenants.get(tenantId) ?? new Map<string, Item>()
    this.#tenants.set(tenantId, items.set(key, item))
  }

  /** Keeps no empty map: `everywhere` would visit each tenant there ever was. */
  #remove(tenantId: string, key: string): void {
    const items = this.#tenants.get(tenantId)
    items?.delete(key)
    if (items?.size === 0) this.#tenants.delete(tenantId)
  }

  #rememberWay(tenantId: string, key: string): void {
    const before = this.#tenants.get(tenantId)?.get(key)
    this.#undo.push(() => {
      if (before === undefined) this.#remove(tenantId, key)
      else this.#set(tenantId, key, before)
    })
  }
}

/** Copies a stored value deeply, so that no caller holds a reference into the store. */
export function copyOf<T>(value: T): T
export function copyOf(value: unknown): unknown {
  if (value instanceof Uint8Array) return Uint8Array.from(value)
  if (Array.isArray(value)) return value.map((item: unknown) => copyOf(item))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, copyOf(item)]))
}

/** Returns a page of the matching items. */
export function pageOf<Item>(matching: readonly Item[], { page, size }: PageRequest): Page<Item> {
  const items = matching.slice((page - 1) * size, page * size)
  return { total: matching.length, items: copyOf(items) }
}

export function newestFirst(
  a: { readonly id: string; readonly createdAt: number },
  b: { readonly id: string; readonly createdAt: number },
): number {
  return b.createdAt - a.createdAt || compare(b.id, a.id)
}

export function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}

/** Orders keys by age, oldest first, then by version. */
export function byAge(a: StoredApplicationKey, b: StoredApplicationKey): number {
  return a.createdAt - b.createdAt || a.version - b.version || compare(a.id, b.id)
}
