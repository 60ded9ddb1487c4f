/**
 * A minimal model of tokens and transactions: maps instead of a store.
 */
export interface ModelToken {
  readonly value: string
  /** When it ends, in epoch milliseconds. */
  readonly ends: number
  /** Whether it asked for deduplication, and so has a fingerprint. */
  readonly unique: boolean
  /** In the order of their making. */
  readonly born: number
}

export interface ModelTransaction {
  state: 'open' | 'committed' | 'rolled_back' | 'expired'
  readonly ends: number
  readonly made: Map<string, ModelToken>
  /** Of tokens that were there: what they become. */
  readonly changed: Map<string, ModelChange>
}

export interface ModelChange {
  /** When what is changed was born: what goes by its id since then is something else. */
  readonly of: number
  /** Null for nothing. */
  readonly to: ModelToken | null
}

/** A transaction by its id; null for none. */
export type Within = string | null

export class Model {
  now: number
  /** Committed and not swept. */
  readonly there = new Map<string, ModelToken>()
  readonly transactions = new Map<string, ModelTransaction>()
  /** Every id that was ever given. */
  readonly known = new Set<string>()
  born = 0

  constructor(now: number) {
    this.now = now
  }

  state(id: string): ModelTransaction['state'] {
    const it = this.transactions.get(id)!
    return it.state === 'open' && it.ends <= this.now ? 'expired' : it.state
  }

  /** The live tokens that a request sees. */
  seen(within: Within): Map<string, ModelToken> {
    const seen = new Map(this.there)
    const { made = [], changed = [] } =
      within === null ? {} : (this.transactions.get(within) as ModelTransaction)
    for (const [id, { of, to }] of changed) {
      const before = seen.get(id)
      if (before?.born !== of) continue
      if (to === null) seen.delete(id)
      else seen.set(id, { ...to, ends: Math.min(before.ends, to.ends) })
    }
    for (const [id, token] of made) seen.set(id, token)
    return new Map([...seen].filter(([, { ends }]) => ends > this.now))
  }

  /** Whether an id is in use, including by a token that is not visible. */
  taken(id: string): boolean {
    return this.there.has(id) || this.#open().some((it) => it.made.has(id))
  }

  locked(id: string, within: Within): boolean {
    const born = this.there.get(id)?.born
    return [...this.transactions].some(
      ([name, it]) =>
        name !== within &&
        this.state(name) === 'open' &&
        born !== undefined &&
        it.changed.get(id)?.of === born,
    )
  }

  duplicateOf(value: string, within: Within, except = ''): string | undefined {
    const duplicates = [...this.seen(within)].filter(
      ([id, it]) => it.unique && it.value === value && id !== except,
    )
    return duplicates.toSorted(([, a], [, b]) => a.born - b.born)[0]?.[0]
  }

  put(id: string, token: ModelToken | null, within: Within): void {
    const transaction = within === null ? undefined : this.transactions.get(within)
    const made = transaction?.made
    if (transaction === undefined) setOrDelete(this.there, id, token)
    else if (made!.has(id) || !this.there.has(id)) setOrDelete(made!, id, token)
    else transaction.changed.set(id, { of: this.there.get(id)!.born, to: token })
  }

  end(id: string, as: 'committed' | 'rolled_back'): void {
    const { made, changed } = this.transactions.get(id)!
    this.transactions.get(id)!.state = as
    if (as === 'rolled_back') return
    for (const [name, { of, to }] of changed) {
      const before = this.there.get(name)
      if (before?.born === of && (to === null || before.ends > this.now)) {
        setOrDelete(this.there, name, to)
      }
    }
    for (const [name, token] of made) this.there.set(name, token)
  }

  sweep(): void {
    for (const [id, { ends }] of this.there) if (ends <= this.now) this.there.delete(id)
    for (const { made } of this.transactions.values()) {
      for (const [id, { ends }] of made) if (ends <= this.now) made.delete(id)
    }
  }

  #open(): ModelTransaction[] {
    return [...this.transactions]
      .filter(([name]) => this.state(name) === 'open')
      .map(([, it]) => it)
  }
}

function setOrDelete<Value>(map: Map<string, Value>, key: string, value: Value | null): void {
  if (value === null) map.delete(key)
  else map.set(key, value)
}
