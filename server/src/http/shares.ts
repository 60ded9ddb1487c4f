import { ServiceError } from '../base/service-error.ts'

/** What one owner has of it, and who waits for some, in order. */
interface Share {
  taken: number
  readonly line: Place[]
}

interface Place {
  readonly amount: number
  readonly begin: () => void
}

/** A place in the line. */
export interface Waiting {
  /** Resolves when it is taken. Rejects with `tenant_busy`, at once where too many wait, and with why it was left. */
  readonly taken: Promise<void>
  /** Gives the place up, if it has not come to anything yet. */
  readonly leave: (reason: Error) => void
}

/**
 * Something that there is not much of, such as memory, in equal shares: whoever has taken all of its own waits until it
 * gives some back, and nobody else notices.
 */
export class Shares {
  readonly #max: number
  readonly #lineMax: number
  readonly #patience: (() => Promise<void>) | null
  readonly #shares = new Map<string, Share>()

  /**
   * Each share is `max`, and `lineMax` wait for each. `patience` resolves when somebody has waited for long enough; null is
   * for as long as it takes.
   */
  constructor(max: number, lineMax: number, patience: (() => Promise<void>) | null) {
    this.#max = max
    this.#lineMax = lineMax
    this.#patience = patience
  }

  /**
   * Takes so much, first come, first served; more than a share when nothing of it is taken. Returns undefined when it
   * is taken at once.
   */
  take(owner: string, amount: number): Waiting | undefined {
    const share = this.#shareOf(owner)
    if (share.line.length > 0 || !this.#fits(share, amount)) return this.#wait(owner, share, amount)
    share.taken += amount
    return undefined
  }

  /** As take(), of what is there already and cannot wait. */
  add(owner: string, amount: number): void {
    this.#shareOf(owner).taken += amount
  }

  /** Whether more is taken than there is. */
  isOver(owner: string): boolean {
    return (this.#shares.get(owner)?.taken ?? 0) > this.#max
  }

  isTaken(owner: string): boolean {
    return (this.#shares.get(owner)?.taken ?? 0) > 0
  }

  give(owner: string, amount: number): void {
    const share = this.#shareOf(owner)
    share.taken -= amount
    this.#pass(owner, share)
  }

  #shareOf(owner: string): Share {
    let share = this.#shares.get(owner)
    if (share === undefined) this.#shares.set(owner, (share = { taken: 0, line: [] }))
    return share
  }

  #fits({ taken }: Share, amount: number): boolean {
    return taken === 0 || taken + amount <= this.#max
  }

  #wait(owner: string, share: Share, amount: number): Waiting {
    if (share.line.length >= this.#lineMax)
      return { taken: Promise.reject(busy()), leave: () => {} }
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const place = { amount, begin: resolve }
    share.line.push(place)
    const leave = (reason: Error): void => {
      const at = share.line.indexOf(place)
      if (at < 0) return
      share.line.splice(at, 1)
      reject(reason)
      this.#pass(owner, share)
    }
    void this.#patience?.().then(() => leave(busy()))
    return { taken: promise, leave }
  }

  #pass(owner: string, share: Share): void {
    const { line } = share
    while (line.length > 0 && this.#fits(share, line[0]!.amount)) {
      const { amount, begin } = line.shift()!
      share.taken += amount
      begin()
    }
    if (share.taken === 0) this.#shares.delete(owner)
  }
}

function busy(): ServiceError {
  return new ServiceError('tenant_busy')
}
