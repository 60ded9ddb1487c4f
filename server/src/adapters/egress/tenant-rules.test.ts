/** What is exempt for one tenant. The attacks are in test/attacks/tenant-exemptions.test.ts. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, test, type TestContext } from 'node:test'
import { collector } from '../../../test/kit/collector.ts'
import { onRequest, testDestination } from '../../../test/kit/test-destination.ts'
import { parseDestination } from '../../base/destination.ts'
import { senderOf, type Sender } from '../../ports/egress.ts'
import { UndiciEgress } from './undici-egress.ts'

const SIGNAL = new AbortController().signal
const [OWN, OTHER] = [senderOf('tenant-a'), senderOf('tenant-b')]

describe('an exemption of one tenant', () => {
  test('adds to those of all', async (t) => {
    const egress = gateway(t, { all: ['10.1.0.0/16'], own: ['10.2.0.0/16'] })
    for (const [url, sender, entry] of [
      ['http://10.1.0.1/', OWN, '10.1.0.0/16'],
      ['http://10.1.0.1/', OTHER, '10.1.0.0/16'],
      ['http://10.2.0.1/', OWN, '10.2.0.0/16'],
    ] as const) {
      const { rule } = await egress.vet(sender, new URL(url), null)
      assert.deepEqual(rule, { name: 'allowed', entry })
    }
  })

  const refused: [why: string, url: string, rule: string][] = [
    ['an address in the URL', 'https://10.2.0.1/', 'literal'],
    ['a name with such an address', 'https://inside.test/', 'address'],
    ['plain http', 'http://inside.test/', 'scheme'],
  ]
  for (const [why, url, rule] of refused) {
    test(`does not allow ${why} to another tenant`, async (t) => {
      const egress = gateway(t, { own: ['10.2.0.0/16'], resolve: '10.2.0.1' })
      await egress.vet(OWN, new URL(url), null)
      await assert.rejects(egress.vet(OTHER, new URL(url), null), { rule })
    })
  }

  test('holds for keyless callers of its proxies, and not for those of another tenant', async (t) => {
    const egress = gateway(t, { own: ['10.2.0.0/16'] })
    const url = new URL('http://10.2.0.1/')
    await egress.vet(senderOf('tenant-a', 'proxy-a'), url, null)
    await assert.rejects(egress.vet(senderOf('tenant-b', 'proxy-b'), url, null))
    await assert.rejects(egress.vet(senderOf('tenant-b', 'tenant-a'), url, null))
  })

  test('has code of that tenant alone go without TLS', async (t) => {
    const destination = await testDestination((socket) => socket.end('plain'))
    t.after(() => destination.close())
    const egress = gateway(t, { own: ['127.0.0.1'] })
    const { port } = destination
    const socket = await egress.tunnel('tenant-a', '127.0.0.1', port, null, SIGNAL)
    assert.equal(String((await once(socket, 'data'))[0]), 'plain')
    const other = egress.tunnel('tenant-b', '127.0.0.1', port, null, SIGNAL)
    await assert.rejects(other, { rule: 'literal' })
    assert.equal(destination.accepted(), 1)
  })

  test('frees the own port of the service only if it names it, and only for that tenant', async (t) => {
    const egress = gateway(t, { all: ['127.0.0.1'], own: ['127.0.0.1:7001'] })
    egress.own(7001)
    egress.own(7002)
    await egress.vet(OWN, new URL('http://127.0.0.1:7001/'), null)
    await egress.vet(OWN, new URL('http://127.0.0.1:7003/'), null)
    for (const [sender, port] of [
      [OWN, 7002],
      [OTHER, 7001],
      [OTHER, 7002],
    ] as const) {
      const vetted = egress.vet(sender, new URL(`http://127.0.0.1:${port}/`), null)
      await assert.rejects(vetted, { rule: 'address' })
    }
  })
})

test('a connection of one tenant is never used for another, even with the same owner', async (t) => {
  const answer = onRequest((socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'))
  const destination = await testDestination(answer)
  t.after(() => destination.close())
  const egress = gateway(t, { all: ['127.0.0.1'] })
  const url = new URL(`http://127.0.0.1:${destination.port}/`)
  const call = async (sender: Sender): Promise<void> => {
    const request = { method: 'GET', headers: [], body: null, timeoutMs: 60_000 }
    await egress.send(await egress.vet(sender, url, null), request, collector()).done
  }
  await call({ tenantId: 'tenant-a', owner: 'x' })
  await call({ tenantId: 'tenant-a', owner: 'x' })
  assert.equal(destination.accepted(), 1)
  await call({ tenantId: 'tenant-b', owner: 'x' })
  assert.equal(destination.accepted(), 2)
})

/** A gateway with exemptions of all tenants, and of `tenant-a` alone. */
function gateway(
  t: TestContext,
  { all = [], own = [], resolve = '8.8.8.8' }: Exempt,
): UndiciEgress {
  const read = (texts: readonly string[]) => texts.map((it) => parseDestination(it)!)
  const egress = new UndiciEgress({
    allow: read(all),
    allowByTenant: new Map([['tenant-a', read(own)]]),
    extraAuthorities: [],
    resolve: async () => [resolve],
  })
  t.after(() => egress.close())
  return egress
}

interface Exempt {
  readonly all?: readonly string[]
  readonly own?: readonly string[]
  readonly resolve?: string
}
