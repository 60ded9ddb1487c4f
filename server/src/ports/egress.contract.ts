import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { scheduler } from 'node:timers/promises'
import {
  senderOf,
  type Egress,
  type OutboundCall,
  type OutboundReceiver,
  type OutboundRequest,
} from './egress.ts'

/** A destination for a contract, and the egress gateway to it. */
export interface EgressStage {
  readonly egress: Egress
  /** Of an allowed destination. */
  readonly url: URL
}

/** The response of the destination: a header section, these chunks one after the other, and then an end, or none. */
export interface DestinationAnswer {
  readonly status: number
  readonly chunks: readonly string[]
  readonly cut: boolean
}

const POST: OutboundRequest = {
  method: 'POST',
  headers: ['X-Any', 'a'],
  body: Buffer.from('body'),
  timeoutMs: 600_000,
}

/** The contract of every Egress. `open` returns one with a destination that answers so. */
export function egressContract(
  name: string,
  open: (answer: DestinationAnswer) => Promise<EgressStage>,
): void {
  describe(`Egress contract: ${name}`, () => {
    const whole = { status: 299, chunks: ['one', 'two'], cut: false }

    test('vet() returns a route for its sender, and refuses what is not listed', async () => {
      const { egress, url } = await open(whole)
      const route = await egress.vet(senderOf('tenant-a'), url, [url.hostname])
      assert.deepEqual([route.sender, route.url.href], [senderOf('tenant-a'), url.href])
      const rule = { name: 'EgressRefusal', rule: 'unlisted' }
      await assert.rejects(egress.vet(senderOf('tenant-a'), url, []), rule)
      await assert.rejects(egress.vet(senderOf('tenant-a'), url, ['other.example']), rule)
    })

    test('vet() refuses a scheme that nothing is sent by', async () => {
      const { egress } = await open(whole)
      const vetted = egress.vet(senderOf('tenant-a'), new URL('ftp://name.test/'), null)
      await assert.rejects(vetted, { name: 'EgressRefusal', rule: 'scheme' })
    })

    test('send() tells a header section once, then data, then the end, and is done', async () => {
      const { received, call } = await send(whole, POST)
      await call.done
      assert.deepEqual(
        [received[0], received.slice(1, -1).join(''), received.at(-1)],
        ['299', 'onetwo', 'end'],
      )
    })

    test('send() says that an answer was cut off, after what came of it', async () => {
      const { received, call } = await send({ ...whole, cut: true }, POST)
      await assert.rejects(call.done, { name: 'EgressFailure', fault: 'reset' })
      assert.equal(received[0], '299')
      assert.ok(!received.includes('end'))
    })

    test('send() tells nothing while it is to wait', async () => {
      let waiting = false
      const { received, call } = await send(whole, POST, () => {
        assert.ok(!waiting)
        waiting = true
        void scheduler.yield().then(() => {
          waiting = false
          call.resume()
        })
        return false
      })
      await call.done
      assert.equal(received.slice(1, -1).join(''), 'onetwo')
    })

    test('send() tells nothing once it was aborted', async () => {
      const { received, call } = await send(whole, POST)
      call.abort()
      await assert.rejects(call.done, { name: 'EgressFailure', fault: 'aborted' })
      const before = received.length
      // By the time another response has come, the rest of this one would have.
      await (
        await send(whole, POST)
      ).call.done
      await scheduler.yield()
      assert.equal(received.length, before)
    })

    test('send() fails when a stream is not as long as it said, or fails', async () => {
      const streams: [length: number | null, chunks: AsyncIterable<Uint8Array>][] = [
        [3, chunksOf('ab')],
        [1, chunksOf('ab')],
        [null, failing()],
      ]
      for (const [length, chunks] of streams) {
        const { call } = await send(whole, { ...POST, body: { length, chunks } })
        await assert.rejects(call.done, { name: 'EgressFailure', fault: 'request' })
      }
    })

    async function send(
      answer: DestinationAnswer,
      request: OutboundRequest,
      more: () => boolean = () => true,
    ): Promise<{ received: string[]; call: OutboundCall }> {
      const { egress, url } = await open(answer)
      const received: string[] = []
      const receiver: OutboundReceiver = {
        headerSection: (status) => void received.push(String(status)),
        data: (chunk) => {
          received.push(Buffer.from(chunk).toString())
          return more()
        },
        end: () => void received.push('end'),
      }
      const route = await egress.vet(senderOf('tenant-a'), url, null)
      return { received, call: egress.send(route, request, receiver) }
    }
  })
}

async function* chunksOf(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text)
}

async function* failing(): AsyncGenerator<Uint8Array> {
  yield Buffer.from('a')
  throw new Error('the client went away')
}
