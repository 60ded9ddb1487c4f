import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { parseDestination } from '../../base/destination.ts'
import type { OutboundReceiver, OutboundRequest } from '../../world/egress.ts'
import { collector, type Collected } from '../../../test/kit/collector.ts'
import {
  onRequest,
  testAuthority,
  testDestination,
  type Answer,
  type CertificateName,
} from '../../../test/kit/test-destination.ts'
import { UndiciEgress } from './undici-egress.ts'

const GET: OutboundRequest = { method: 'GET', headers: [], body: null, timeoutMs: 5_000 }

test('send() carries method, path, headers and body, and tells head, data and end', async (t) => {
  const seen: string[] = []
  const { url, egress } = await stage(t, (socket, head, body) => {
    seen.push(head, body.toString())
    socket.write(
      'HTTP/1.1 201 Made it\r\nX-One: a\r\nx-one: \xe9\r\nContent-Length: 5\r\n\r\n',
      'latin1',
    )
    socket.write('hello')
  })
  const route = await egress.vet('tenant-a', new URL('/a/b?c=%20d', url), null)
  assert.deepEqual(route.rule, { name: 'allowed', entry: '127.0.0.1/32' })
  const { status, reason, headers, body } = await collected(egress.send.bind(egress, route), {
    ...GET,
    method: 'POST',
    headers: ['X-Card', 'a', 'x-Odd', '\xe9'],
    body: Buffer.from('{}'),
  })
  assert.equal(status, 201)
  assert.equal(reason, 'Made it')
  assert.deepEqual(headers, ['X-One', 'a', 'x-one', '\xe9', 'Content-Length', '5'])
  assert.equal(body.toString(), 'hello')
  assert.match(seen[0]!, /^POST \/a\/b\?c=%20d HTTP\/1.1\r\n/)
  assert.match(seen[0]!, /\r\nX-Card: a\r\nx-Odd: \xe9/)
  assert.equal(seen[1], '{}')
})

test('send() speaks TLS to a name, and uses a connection again', async (t) => {
  const { destination, egress, tlsUrl } = await tlsStage(t, 'destination')
  for (const _ of [1, 2, 3]) {
    const route = await egress.vet('tenant-a', tlsUrl, null)
    const { status } = await collected(egress.send.bind(egress, route), GET)
    assert.equal(status, 204)
  }
  assert.equal(destination.accepted(), 1)
})

const noContent: Answer = onRequest((socket) => socket.write('HTTP/1.1 204 No Content\r\n\r\n'))

async function collected(
  send: (request: OutboundRequest, receiver: OutboundReceiver) => { done: Promise<void> },
  request: OutboundRequest,
): Promise<Collected> {
  const receiver = collector()
  await send(request, receiver).done
  return receiver
}

async function stage(t: TestContext, answer: Parameters<typeof onRequest>[0]) {
  const destination = await testDestination(onRequest(answer))
  const egress = egressTo(t, destination.close)
  return { destination, egress, url: `http://127.0.0.1:${destination.port}` }
}

async function tlsStage(t: TestContext, certificate: CertificateName) {
  const destination = await testDestination(noContent, { certificate })
  const egress = egressTo(t, destination.close)
  const tlsUrl = new URL(`https://destination.test:${destination.port}/`)
  return { destination, egress, tlsUrl }
}

function egressTo(t: TestContext, close: () => Promise<void>): UndiciEgress {
  const egress = new UndiciEgress({
    allow: [parseDestination('127.0.0.1/32')!],
    extraAuthorities: [testAuthority()],
    resolve: async () => ['127.0.0.1'],
  })
  t.after(async () => {
    await egress.close()
    await close()
  })
  return egress
}
