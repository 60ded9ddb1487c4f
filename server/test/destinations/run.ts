import assert from 'node:assert/strict'
import { UndiciEgress } from '../../src/adapters/egress/undici-egress.ts'
import { parseDestination } from '../../src/base/destination.ts'
import { EgressFailure, senderOf, type OutboundReceiver } from '../../src/ports/egress.ts'
import { testAuthority, testDestination, type TestDestination } from '../kit/test-destination.ts'
import { KINDS, type DestinationKind } from './kinds.ts'

/** By undici, and by Node's own client, which a field that undici does not send asks for. */
export const CARRIERS = { undici: [], node: ['Keep-Alive', 'timeout=5'] } as const

export interface Destinations {
  readonly egress: UndiciEgress
  /** Calls a destination of this kind, and throws when that ends otherwise than it should. */
  readonly call: (kind: DestinationKind, carrier: keyof typeof CARRIERS) => Promise<void>
  /** Throws when a destination has connections left once the gateway is closed. */
  readonly close: () => Promise<void>
}

/**
 * Starts a destination of every kind, all on loopback. `timeoutMs` is for those that are late; the others have all
 * the time that a busy machine may need.
 */
export async function openDestinations(lateMs: number): Promise<Destinations> {
  const egress = new UndiciEgress({
    allow: [parseDestination('127.0.0.1/32')!],
    extraAuthorities: [testAuthority()],
    resolve: async () => ['127.0.0.1'],
  })
  const started = new Map<DestinationKind, TestDestination>()
  for (const kind of KINDS) {
    started.set(kind, await testDestination(kind.answer ?? (() => {}), kind.tls ?? null))
  }
  for (const [kind, destination] of started) if (kind.answer === null) await destination.close()

  return {
    egress,
    close: async () => {
      await egress.close()
      const left = await stillOpen([...started.values()])
      for (const [kind, it] of started) if (kind.answer !== null) await it.close()
      assert.equal(left, 0, 'connections that nobody closed')
    },
    call: async (kind, carrier) => {
      // On a busy machine the header section may come too late as well: then once more, with more time.
      let timeoutMs = kind.ends !== 'timeout' ? 60_000 : kind.headerSection ? 4 * lateMs : lateMs
      while (!(await callOnce(kind, carrier, timeoutMs))) timeoutMs *= 4
    },
  }

  /** Resolves with whether it came as far as it has to before it timed out. */
  async function callOnce(
    kind: DestinationKind,
    carrier: keyof typeof CARRIERS,
    timeoutMs: number,
  ): Promise<boolean> {
    const secure = kind.secure ?? kind.tls !== undefined
    const { port } = started.get(kind)!
    const url = new URL(`${secure ? 'https' : 'http'}://destination.test:${port}/`)
    const route = await egress.vet(senderOf('tenant-a'), url, null)
    const received: string[] = []
    const receiver: OutboundReceiver = {
      headerSection: () => received.push('header section'),
      data: () => {
        if (kind.abandon === 'reading') call.abort()
        if (kind.abandon === 'paused') setImmediate(() => call.abort())
        return kind.abandon === undefined
      },
      end: () => received.push('end'),
    }
    const body = Buffer.from('{"number":"4242"}')
    const request = { method: 'POST', headers: CARRIERS[carrier], body, timeoutMs }
    const call = egress.send(route, request, receiver)
    const ended = await call.done.then(
      () => 'whole',
      (error: unknown) => (error instanceof EgressFailure ? error.fault : error),
    )
    const mayBeLost = kind.closing ?? kind.abrupt ?? false
    if (mayBeLost && ended === 'reset' && received.length === 0) return true
    if (kind.headerSection && ended === 'timeout' && received.length === 0 && timeoutMs < 60_000)
      return false
    const ends = (carrier === 'node' ? kind.endsByNode : undefined) ?? kind.ends
    const expected = [
      ...(kind.headerSection ? ['header section'] : []),
      ...(ends === 'whole' ? ['end'] : []),
    ]
    assert.deepEqual(
      { ended, received },
      { ended: ends, received: expected },
      `${kind.name}, ${carrier}`,
    )
    return true
  }
}

/** Waits for connections to be closed from the other side, for as long as that may take. */
async function stillOpen(destinations: readonly TestDestination[]): Promise<number> {
  for (let turns = 0; ; turns += 1) {
    const open = destinations.reduce((sum, it) => sum + it.open(), 0)
    if (open === 0 || turns === 6_000) return open
    await new Promise((resolve) => void setTimeout(resolve, 10))
  }
}
