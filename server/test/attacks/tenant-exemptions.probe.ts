/**
 * Runs in a network namespace of its own, in which every address leads to this process: two tenants try to reach an address
 * inside, by everything that sends for them. Prints how often each was there, if it is exempt for the first and if for all.
 */
import assert from 'node:assert/strict'
import { UndiciEgress } from '../../src/adapters/egress/undici-egress.ts'
import { parseDestination } from '../../src/base/destination.ts'
import { openRunner } from '../../src/cli/open-runner.ts'
import type { Egress } from '../../src/ports/egress.ts'
import { stillVault, type StillVault } from '../kit/still-vault.ts'
import { onRequest, testAuthority, testDestination } from '../kit/test-destination.ts'

/** Requests and connections that arrived inside, by the name of the attack. */
export type Reached = Readonly<Record<string, number>>

/** The probe's output. */
export interface TenantExemptionsOutcome {
  /** The address is exempt for the first tenant. */
  readonly forOne: { readonly first: Reached; readonly second: Reached }
  /** The address is exempt for every tenant, which was the only way before. */
  readonly forAll: { readonly first: Reached; readonly second: Reached }
}

const [INSIDE, OUTSIDE] = ['10.9.0.1', '8.8.8.8']
/** The only name of the certificate; each test decides what it resolves to. */
const NAME = 'destination.test'
const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

let arrived = 0
const arrive = onRequest((socket) => {
  arrived++
  socket.write(ANSWER)
})
const secure = await testDestination(arrive, { certificate: 'destination' }, INSIDE)
const plain = await testDestination(arrive, null, INSIDE)
const redirecting = await testDestination(
  onRequest((socket) => {
    const inside = `http://${INSIDE}:${plain.port}/`
    socket.write(`HTTP/1.1 302 Found\r\nLocation: ${inside}\r\nContent-Length: 0\r\n\r\n`)
  }),
  { certificate: 'destination' },
  OUTSIDE,
)
/** At the port of the one inside, so that a name can lead to either. */
const BY_NAME = `https://${NAME}:${secure.port}/`
const BY_ADDRESS = `http://${INSIDE}:${plain.port}/`

/** Returns how code asks for the address or the name. */
const CODES: Readonly<Record<string, string>> = {
  net: `const it = require('net').connect(${plain.port}, '${INSIDE}', () => it.write('GET / HTTP/1.1\\r\\n\\r\\n'))
    it.on('data', resolve).on('error', resolve)`,
  http: `require('http').get('${BY_ADDRESS}', resolve).on('error', resolve)`,
  https: `require('https').get('${BY_NAME}', resolve).on('error', resolve)`,
  tls: `const it = require('tls').connect(${secure.port}, '${NAME}', { servername: '${NAME}' }, () => it.write('GET / HTTP/1.1\\r\\n\\r\\n'))
    it.on('data', resolve).on('error', resolve)`,
  'fetch by address': `fetch('${BY_ADDRESS}').then(resolve, resolve)`,
  'fetch by name': `fetch('${BY_NAME}').then(resolve, resolve)`,
}

const outcome: TenantExemptionsOutcome = {
  forOne: await attacks('one'),
  forAll: await attacks('all'),
}
process.stdout.write(JSON.stringify(outcome))
process.exit(0)

async function attacks(exempt: 'one' | 'all'): Promise<TenantExemptionsOutcome['forOne']> {
  let gateway: UndiciEgress
  const egress: Egress = {
    vet: (...about) => gateway.vet(...about),
    send: (...about) => gateway.send(...about),
    tunnel: (...about) => gateway.tunnel(...about),
    close: () => gateway.close(),
  }
  const runner = await openRunner({
    // What the walls stop is another test's: here it is the gateway.
    level: 'portable',
    packages: [],
    logs: false,
    egress,
    log: { info: () => {}, warn: () => {}, error: () => {} },
    authorities: [testAuthority()],
    connect: () => null,
  })
  assert.equal(runner.flaw, null)
  const vault = await stillVault({
    store: 'memory',
    oneServer: 'a process by itself',
    change: (world) => ({ ...world, egress, runner }),
  })
  const first = await tenantOf(vault, vault.managementKey)
  const second = await tenantOf(vault, await vault.addTenant('second'))
  const entry = [parseDestination(INSIDE)!]
  gateway = new UndiciEgress({
    allow: exempt === 'all' ? entry : [],
    allowByTenant: new Map(exempt === 'all' ? [] : [[first.id, entry]]),
    extraAuthorities: [testAuthority()],
    resolve: async () => [INSIDE],
  })

  // The first tenant goes first everywhere: its connections and name answers are there when the second one comes.
  const reached = { first: {} as Record<string, number>, second: {} as Record<string, number> }
  for (const [who, tenant] of [
    ['first', first],
    ['second', second],
  ] as const) {
    const count = async (attack: string, act: () => Promise<unknown>): Promise<void> => {
      const before = arrived + secure.accepted() + plain.accepted()
      await act()
      reached[who][attack] = arrived + secure.accepted() + plain.accepted() - before
    }
    const { key, proxied, manage } = tenant
    await count('by its address', () => proxied({ 'BT-PROXY-URL': BY_ADDRESS }))
    await count('by a name', () => proxied({ 'BT-PROXY-URL': BY_NAME }))
    await count('by a connection that is there', () => proxied({ 'BT-PROXY-URL': BY_NAME }))
    await count('by Node’s own client', () =>
      proxied({ 'BT-PROXY-URL': BY_NAME, 'BT-PROXY-KEEP-ALIVE': 'timeout=5' }),
    )
    await count('by a redirect', async () => {
      const url = `https://${NAME}:${redirecting.port}/`
      await withName(OUTSIDE, async () => {
        const reply = await proxied({ 'BT-PROXY-URL': url })
        assert.equal(reply.status, 302, reply.text)
      })
    })
    for (const requireAuth of [true, false]) {
      const body = { name: 'x', destination_url: BY_NAME, require_auth: requireAuth }
      const made = (await manage('POST', '/proxies', body)).json()
      const headers = { 'BT-PROXY-KEY': made['key'] as string }
      await count(requireAuth ? 'by a proxy with its key' : 'by a proxy without a key', () =>
        proxied(headers, requireAuth ? key : null),
      )
    }
    await count('by a callback', async () => {
      const reactor = await tenant.reactor('module.exports = () => ({})')
      await vault.call('POST', `/reactors/${reactor}/react`, {
        key,
        body: { callback_url: BY_NAME },
      })
      await deliver(vault)
    })
    await count('by a callback whose name changes', async () => {
      const reactor = await tenant.reactor('module.exports = () => ({})')
      await withName(OUTSIDE, async () => {
        const body = { callback_url: BY_NAME }
        const reply = await vault.call('POST', `/reactors/${reactor}/react`, { key, body })
        assert.equal(reply.status, 202, reply.text)
      })
      await deliver(vault)
    })
    for (const [means, code] of Object.entries(CODES)) {
      await count(`by code, ${means}`, async () => {
        const reactor = await tenant.reactor(
          `module.exports = () => new Promise((resolve) => { ${code} }).then(() => ({}))`,
        )
        const reply = await vault.call('POST', `/reactors/${reactor}/react`, { key, body: {} })
        assert.equal(reply.status, 200, reply.text)
      })
    }
  }
  await gateway.close()
  await runner.close()
  await vault.close()
  return reached

  /** Has the name lead elsewhere while `act` runs, by a gateway of its own: answers to look-ups are cached. */
  async function withName(address: string, act: () => Promise<unknown>): Promise<void> {
    const own = gateway
    gateway = new UndiciEgress({
      allow: [],
      extraAuthorities: [testAuthority()],
      resolve: async () => [address],
    })
    await act()
    await gateway.close()
    gateway = own
  }
}

/** A tenant whose application may use proxies and reactors. */
async function tenantOf(vault: StillVault, managementKey: string) {
  const manage = (method: 'GET' | 'POST', path: string, body?: object) =>
    vault.call(method, path, { key: managementKey, ...(body && { body: { ...body } }) })
  const made = await manage('POST', '/applications', {
    name: 'x',
    type: 'private',
    permissions: ['token:use', 'token:create'],
  })
  const key = made.json()['key'] as string
  return {
    id: (await manage('GET', '/tenants/self')).json()['id'] as string,
    key,
    manage,
    proxied: (headers: Record<string, string>, by: string | null = key) =>
      vault.call('GET', '/proxy', { headers, ...(by === null ? {} : { key: by }) }),
    reactor: async (code: string): Promise<string> => {
      const body = { name: 'x', code, configuration: { a: 'b' } }
      const reply = await manage('POST', '/reactors', body)
      assert.equal(reply.status, 201, reply.text)
      return reply.json()['id'] as string
    },
  }
}

/** Runs what was accepted, and tries each delivery once. */
async function deliver({ app: { jobs } }: StillVault): Promise<void> {
  for (let begun = true; begun;) {
    begun = false
    jobs.onWork = () => (begun = true)
    await jobs.poll()
    await jobs.settled()
  }
}
