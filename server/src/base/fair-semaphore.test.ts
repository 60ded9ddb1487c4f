import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as fc from '../../test/kit/fast-check.ts'
import { FairSemaphore, type QueueSlot, type SemaphoreLimits } from './fair-semaphore.ts'

/** Acquires for `owner`, and adds its name to `begun` once it has acquired. */
function acquirer(semaphore: FairSemaphore, begun: string[]) {
  return (owner: string, amount: number, name: string): void => {
    const waiting = semaphore.acquire(owner, amount)
    if (waiting === undefined) begun.push(name)
    else
      void waiting.acquired.then(
        () => begun.push(name),
        () => begun.push(`${name} no more`),
      )
  }
}

/** Resolves once all pending promise callbacks have run. */
async function settled(): Promise<void> {
  for (let it = 0; it < 10; it++) await Promise.resolve()
}

describe('FairSemaphore with a limit per owner', () => {
  test('owners wait for themselves alone, first come, first served', async () => {
    const semaphore = new FairSemaphore({ ownerMax: 10 })
    const begun: string[] = []
    const acquire = acquirer(semaphore, begun)
    acquire('a', 6, 'a1')
    acquire('a', 6, 'a2')
    acquire('a', 1, 'a3')
    acquire('b', 10, 'b1')
    await settled()
    assert.deepEqual(begun, ['a1', 'b1'])
    semaphore.release('a', 6)
    await settled()
    assert.deepEqual(begun, ['a1', 'b1', 'a2', 'a3'])
  })

  test('more than the limit is acquired when nothing is held', async () => {
    const semaphore = new FairSemaphore({ ownerMax: 10 })
    const begun: string[] = []
    const acquire = acquirer(semaphore, begun)
    acquire('a', 1, 'a1')
    acquire('a', 30, 'a2')
    await settled()
    assert.equal(semaphore.isOverLimit('a'), false)
    semaphore.release('a', 1)
    await settled()
    assert.deepEqual(begun, ['a1', 'a2'])
    assert.equal(semaphore.isOverLimit('a'), true)
  })

  test('a waiter whose time is up takes nothing, and blocks no other', async () => {
    const tired: (() => void)[] = []
    const waitTimeout = () => new Promise<void>((resolve) => void tired.push(resolve))
    const semaphore = new FairSemaphore({ ownerMax: 10, waitTimeout })
    const begun: string[] = []
    const acquire = acquirer(semaphore, begun)
    acquire('a', 6, 'a1')
    acquire('a', 6, 'a2')
    acquire('a', 4, 'a3')
    tired[0]!()
    await settled()
    assert.deepEqual(begun, ['a1', 'a2 no more', 'a3'])
    semaphore.release('a', 6)
    semaphore.release('a', 4)
    assert.equal(semaphore.acquire('a', 10), undefined)
  })

  test('a waiter that leaves blocks no other either, and the number of waiters is bounded', async () => {
    const refuse = (why: string) => new Error(`Refused: ${why}`)
    const semaphore = new FairSemaphore({ ownerMax: 10, queueMax: 2, refuse })
    const begun: string[] = []
    semaphore.acquire('a', 6)
    const waiting = semaphore.acquire('a', 6)!
    assert.equal(semaphore.hasCapacity('a'), true)
    acquirer(semaphore, begun)('a', 4, 'a2')
    assert.equal(semaphore.hasCapacity('a'), false)
    await assert.rejects(semaphore.acquire('a', 4)!.acquired, /Refused: queue-full/)
    waiting.leave(new Error('gone'))
    await assert.rejects(waiting.acquired, /gone/)
    assert.deepEqual(begun, ['a2'])
    waiting.leave(new Error('gone again'))
    semaphore.release('a', 10)
    assert.equal(semaphore.isHeld('a'), false)
  })

  test('what is there already counts, and those who come wait for it', async () => {
    const semaphore = new FairSemaphore({ ownerMax: 10 })
    const begun: string[] = []
    semaphore.forceAcquire('a', 11)
    assert.equal(semaphore.isOverLimit('a'), true)
    acquirer(semaphore, begun)('a', 0, 'a1')
    await settled()
    assert.deepEqual(begun, [])
    semaphore.release('a', 11)
    await settled()
    assert.deepEqual(begun, ['a1'])
  })

  test('an owner that forceAcquire() brings to its limit no longer holds up others', async () => {
    const semaphore = new FairSemaphore({ max: 10, ownerMax: 6 })
    const begun: string[] = []
    const acquire = acquirer(semaphore, begun)
    acquire('c', 6, 'c1')
    acquire('a', 5, 'a1')
    acquire('b', 1, 'b1')
    await settled()
    assert.deepEqual(begun, ['c1'])
    semaphore.forceAcquire('a', 2)
    await settled()
    assert.deepEqual(begun, ['c1', 'b1'])
  })

  test('fullOwners() returns the owners whose limit leaves nothing', () => {
    const semaphore = new FairSemaphore({ ownerMax: 2 })
    assert.equal(semaphore.tryAcquire('a', 2), true)
    assert.equal(semaphore.tryAcquire('b'), true)
    assert.deepEqual(semaphore.fullOwners(), ['a'])
    assert.equal(semaphore.tryAcquire('a'), false)
    semaphore.release('a')
    assert.deepEqual(semaphore.fullOwners(), [])
  })
})

describe('FairSemaphore with a limit for all', () => {
  test('lets one work at a time, owners one after the other, each in its own order', async () => {
    const semaphore = new FairSemaphore({ max: 1 })
    const done: string[] = []
    let running = 0
    const work = (owner: string, name: string) =>
      semaphore.run(owner, async () => {
        running += 1
        await Promise.resolve()
        assert.equal(running, 1)
        done.push(name)
        running -= 1
        return name
      })
    const names = ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1']
    assert.deepEqual(await Promise.all(names.map((it) => work(it[0]!, it))), names)
    assert.deepEqual(done, ['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'a4'])
  })

  test('rejects as the work does, and goes on with the next', async () => {
    const semaphore = new FairSemaphore({ max: 1 })
    const failed = semaphore.run('a', () => Promise.reject(new Error('No')))
    const thrown = semaphore.run('a', () => {
      throw new Error('At once')
    })
    const fine = semaphore.run('b', async () => 'fine')
    await assert.rejects(failed, /No/)
    await assert.rejects(thrown, /At once/)
    assert.equal(await fine, 'fine')
    assert.equal(await semaphore.run('a', async () => 'again'), 'again')
  })

  test('passes over an owner at its own limit, and nobody over a waiter that only waits for the limit of all', async () => {
    const semaphore = new FairSemaphore({ max: 4, ownerMax: 3 })
    const begun: string[] = []
    const acquire = acquirer(semaphore, begun)
    acquire('a', 2, 'a1')
    acquire('a', 2, 'a2')
    acquire('b', 1, 'b1')
    acquire('c', 2, 'c1')
    acquire('d', 1, 'd1')
    await settled()
    assert.deepEqual(begun, ['a1', 'b1'])
    assert.equal(semaphore.isFree('d'), false)
    semaphore.release('b')
    await settled()
    assert.deepEqual(begun, ['a1', 'b1', 'c1'])
    semaphore.release('a', 2)
    await settled()
    assert.deepEqual(begun, ['a1', 'b1', 'c1', 'a2'])
  })
})

describe('FairSemaphore, whatever owners do', () => {
  test('acquires in the order of a plain model, within the limits, and keeps nothing once all is released', async () => {
    const limit = (min: number) => fc.option(fc.integer({ min, max: 8 }), { nil: Infinity })
    const limits = fc.record({ max: limit(1), ownerMax: limit(1), queueMax: limit(0) })
    await fc.assert(
      fc.asyncProperty(
        limits,
        fc.array(anyStep, { minLength: 30, maxLength: 60 }),
        async (limits, steps) => {
          const both = new SemaphoreAndModel(limits)
          for (const it of steps) await both.take(it)
          await both.releaseAll()
        },
      ),
      { numRuns: 200 },
    )
  })
})

const OWNERS = ['a', 'b', 'c']
const SEVERAL = ['acquire', 'acquire', 'acquire', 'acquire', 'release', 'release'] as const

const anyStep = fc.record({
  kind: fc.constantFrom(...SEVERAL, 'try', 'force', 'leave', 'timeout'),
  owner: fc.constantFrom(...OWNERS),
  amount: fc.integer({ min: 0, max: 5 }),
  pick: fc.nat(),
})
type SemaphoreStep = typeof anyStep extends fc.Arbitrary<infer It> ? It : never

type Limits = Required<Pick<SemaphoreLimits, 'max' | 'ownerMax' | 'queueMax'>>

interface Acquisition {
  readonly id: number
  readonly owner: string
  readonly amount: number
}

const NONE: readonly [number, { slot: Pick<QueueSlot, 'leave'>; timeout: () => void }] = [
  -1,
  { slot: { leave: () => {} }, timeout: () => {} },
]

/** The semaphore beside a model that looks through all acquisitions whenever something changes. */
class SemaphoreAndModel {
  readonly #limits: Limits
  readonly #real: FairSemaphore
  readonly #slots = new Map<number, { slot: QueueSlot; timeout: () => void }>()
  readonly #begun: number[] = []
  readonly #refused: number[] = []
  #timeout: () => void = () => {}
  #ids = 0

  #held: Acquisition[] = []
  #waiting: Acquisition[] = []
  /** When the owner was served last, or began to wait. */
  readonly #since = new Map<string, number>()
  readonly #expected: number[] = []
  readonly #expectedRefusals: number[] = []
  /** For each waiting owner that its own limit does not hold up, how often each other was served. */
  readonly #overtaken = new Map<string, string[]>()

  constructor(limits: Limits) {
    this.#limits = limits
    this.#real = new FairSemaphore({
      ...limits,
      waitTimeout: () => new Promise((resolve) => (this.#timeout = resolve)),
    })
  }

  async take({ kind, owner, amount, pick }: SemaphoreStep): Promise<void> {
    const it = { id: this.#ids++, owner, amount }
    if (kind === 'acquire') this.#acquire(it)
    else if (kind === 'try') this.#try(it)
    else if (kind === 'force') {
      this.#real.forceAcquire(owner, amount)
      this.#held.push(it)
      this.#serve()
    } else if (kind === 'release') this.#release(pick)
    else this.#leave(pick, kind)
    await settled()
    this.#check()
  }

  async releaseAll(): Promise<void> {
    while (this.#held.length > 0) {
      this.#release(0)
      await settled()
      this.#check()
    }
    assert.deepEqual(this.#waiting, [])
    for (const it of OWNERS) {
      assert.equal(this.#real.isHeld(it), false)
      assert.equal(this.#real.isFree(it, 100), true)
    }
  }

  #acquire(it: Acquisition): void {
    this.#timeout = () => {}
    const slot = this.#real.acquire(it.owner, it.amount)
    if (slot === undefined) this.#begun.push(it.id)
    else {
      this.#slots.set(it.id, { slot, timeout: this.#timeout })
      slot.acquired.then(
        () => this.#begun.push(it.id),
        () => this.#refused.push(it.id),
      )
    }
    if (this.#isFree(it)) this.#begin(it)
    else if (this.#waitingOf(it.owner).length >= this.#limits.queueMax)
      this.#expectedRefusals.push(it.id)
    else {
      if (this.#waitingOf(it.owner).length === 0) this.#since.set(it.owner, it.id)
      this.#waiting.push(it)
    }
  }

  #try(it: Acquisition): void {
    assert.equal(this.#real.tryAcquire(it.owner, it.amount), this.#isFree(it))
    if (this.#isFree(it)) this.#held.push(it)
  }

  #release(pick: number): void {
    const [it] = this.#held.splice(pick % Math.max(1, this.#held.length), 1)
    if (it === undefined) return
    this.#real.release(it.owner, it.amount)
    this.#serve()
  }

  #leave(pick: number, kind: 'leave' | 'timeout'): void {
    const [id, { slot, timeout }] = [...this.#slots][pick % Math.max(1, this.#slots.size)] ?? NONE
    if (kind === 'leave') slot.leave(new Error('gone'))
    else timeout()
    const index = this.#waiting.findIndex((it) => it.id === id)
    // Most have acquired or left before, and nothing changes.
    if (index < 0) return
    const [{ owner }] = this.#waiting.splice(index, 1) as [Acquisition]
    if (this.#waitingOf(owner).length === 0) this.#overtaken.delete(owner)
    this.#expectedRefusals.push(id)
    this.#serve()
  }

  #serve(): void {
    for (let it = this.#next(); it !== undefined && this.#fits(it); it = this.#next()) {
      this.#countTurn(it)
      this.#waiting.splice(this.#waiting.indexOf(it), 1)
      this.#since.set(it.owner, this.#ids++)
      this.#begin(it)
    }
  }

  #begin(it: Acquisition): void {
    this.#held.push(it)
    this.#expected.push(it.id)
    assert.ok(this.#heldBy(it.owner) <= this.#limits.ownerMax || this.#isAlone(it, it.owner))
    assert.ok(this.#heldBy() <= this.#limits.max || this.#isAlone(it))
  }

  /** Nobody is served twice while an owner waits that could be. */
  #countTurn(served: Acquisition): void {
    this.#overtaken.delete(served.owner)
    for (const owner of new Set(this.#waiting.map((it) => it.owner))) {
      if (owner === served.owner || !this.#fitsOwner(this.#waitingOf(owner)[0]!)) continue
      const others = this.#overtaken.get(owner) ?? []
      assert.ok(!others.includes(served.owner), `${owner} was overtaken twice`)
      this.#overtaken.set(owner, [...others, served.owner])
    }
  }

  #next(): Acquisition | undefined {
    return [...new Set(this.#waiting.map((it) => it.owner))]
      .map((it) => this.#waitingOf(it)[0]!)
      .filter((it) => this.#fitsOwner(it))
      .toSorted((a, b) => this.#since.get(a.owner)! - this.#since.get(b.owner)!)[0]
  }

  #isFree(it: Acquisition): boolean {
    if (this.#waitingOf(it.owner).length > 0 || !this.#fitsOwner(it)) return false
    return this.#fits(it) && this.#next() === undefined
  }

  #fits(it: Acquisition): boolean {
    return this.#heldBy() === 0 || this.#heldBy() + it.amount <= this.#limits.max
  }

  #fitsOwner({ owner, amount }: Acquisition): boolean {
    return this.#heldBy(owner) === 0 || this.#heldBy(owner) + amount <= this.#limits.ownerMax
  }

  #isAlone(it: Acquisition, owner?: string): boolean {
    return this.#heldBy(owner) === it.amount
  }

  #heldBy(owner?: string): number {
    return this.#held
      .filter((it) => owner === undefined || it.owner === owner)
      .reduce((sum, it) => sum + it.amount, 0)
  }

  #waitingOf(owner: string): Acquisition[] {
    return this.#waiting.filter((it) => it.owner === owner)
  }

  #check(): void {
    assert.deepEqual(this.#begun.splice(0), this.#expected.splice(0))
    assert.deepEqual(this.#refused.splice(0), this.#expectedRefusals.splice(0))
    for (const owner of OWNERS) {
      const held = this.#heldBy(owner)
      assert.equal(this.#real.isHeld(owner), held > 0)
      assert.equal(this.#real.isOverLimit(owner), held > this.#limits.ownerMax)
    }
    const full = OWNERS.filter((it) => !this.#fitsOwner({ id: 0, owner: it, amount: 1 }))
    assert.deepEqual(this.#real.fullOwners().toSorted(), full)
  }
}
