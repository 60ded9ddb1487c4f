/**
 * Runs in a network namespace of its own, in which every address there is leads to this process: tries to get through
 * the egress gateway to forbidden ones, and prints what became of it.
 */
import { createServer, type Socket } from 'node:net'
import { dial } from '../../src/adapters/egress/dial.ts'
import { endpointOf } from '../../src/adapters/egress/egress-endpoint.ts'
import { trustOf } from '../../src/adapters/egress/trust.ts'
import { UndiciEgress, type EgressSettings } from '../../src/adapters/egress/undici-egress.ts'
import { specialPurpose } from '../../src/adapters/egress/address-rule.ts'
import { parseDestination } from '../../src/base/destination.ts'
import { parseIpAddress } from '../../src/base/ip-address.ts'
import { EgressFailure, EgressRefusal, senderOf, type Egress } from '../../src/ports/egress.ts'
import { onRequest, testAuthority, testDestination } from '../kit/test-destination.ts'
import { FORBIDDEN_IPV4, FORBIDDEN_IPV6, formsOf } from './forbidden-forms.ts'

/** The probe's output. */
export interface AddressProbeOutcome {
  /** URLs that were tried, and those of them that no parser took. */
  readonly forms: number
  readonly noUrls: number
  /** URLs that were not refused, as text. */
  readonly let: readonly string[]
  /** How often each rule refused. */
  readonly rules: Readonly<Record<string, number>>
  /** Connections that were accepted at forbidden addresses, by the name of the attack. */
  readonly reached: Readonly<Record<string, number>>
  /** The same where the guard was taken out: what shows that they would have been seen. */
  readonly control: Readonly<Record<string, number>>
}

const PUBLIC = ['8.8.8.8', '2606:4700::1111']
const FORBIDDEN = [...FORBIDDEN_IPV4, ...FORBIDDEN_IPV6]

/** Every connection that was accepted, by the address it was made to. */
const accepted: string[] = []
const note = (socket: Socket): void => {
  const address = socket.localAddress ?? ''
  accepted.push(address.startsWith('::ffff:') ? address.slice(7) : address)
}

for (const port of [80, 443, 8080]) {
  const canary = createServer((socket) => {
    note(socket)
    socket.on('error', () => {}).destroy()
  })
  await new Promise<void>((resolve) => void canary.listen(port, '::', resolve))
}
const redirecting = await testDestination(
  onRequest((socket) => {
    const forbidden = 'http://169.254.169.254/latest/meta-data'
    socket.write(`HTTP/1.1 302 Found\r\nLocation: ${forbidden}\r\nContent-Length: 0\r\n\r\n`)
  }),
  { certificate: 'destination' },
  '::',
)

const rules: Record<string, number> = {}
const let_: string[] = []
const reached: Record<string, number> = {}
const control: Record<string, number> = {}

const urls = FORBIDDEN.flatMap(formsOf)
const noUrls = urls.filter((it) => !URL.canParse(it)).length
reached['written otherwise'] = await count(async () => {
  // By the system's resolver, which takes more for an address than a parser of URLs does.
  const egress = gateway({})
  for (const url of urls) if (URL.canParse(url)) await attempt(egress, url)
})

reached['behind a name'] = await count(async () => {
  for (const address of FORBIDDEN) {
    await attempt(gateway({ resolve: async () => [address] }), 'https://name.test/')
    for (const open of PUBLIC) {
      await attempt(gateway({ resolve: async () => [open, address] }), 'https://name.test/')
      await attempt(gateway({ resolve: async () => [address, open] }), 'https://name.test:8080/')
    }
  }
})
reached['behind a name, inside IPv6'] = await count(async () => {
  for (const address of FORBIDDEN_IPV4) {
    const prefixes = ['::ffff:', '::', '64:ff9b::', '64:ff9b:1::', '2001:4860::5efe:']
    for (const prefix of prefixes) {
      await attempt(gateway({ resolve: async () => [prefix + address] }), 'https://name.test/')
    }
  }
})
reached['behind a name, as a resolver may write it'] = await count(async () => {
  for (const address of [
    '127.1',
    '2130706433',
    '0x7f.0.0.1',
    'fe80::1%lo',
    '::1%1',
    '',
    'localhost',
  ]) {
    await attempt(gateway({ resolve: async () => [address] }), 'https://name.test/')
  }
})

// DNS rebinding: first a public address, then a forbidden one. Every connection must go to the vetted address.
reached['behind a name that changes'] = await count(async () => {
  for (const address of FORBIDDEN) {
    let asked = 0
    const egress = gateway({ resolve: async () => [asked++ === 0 ? PUBLIC[0]! : address] })
    const route = await egress.vet(senderOf('tenant-a'), new URL('https://name.test/'), null)
    for (let times = 0; times < 3; times += 1) await send(egress, route)
    await egress.close()
  }
})

reached['behind a redirect'] = await count(async () => {
  const egress = gateway({ resolve: async () => [PUBLIC[0]!] })
  const url = new URL(`https://destination.test:${redirecting.port}/`)
  const status = await send(egress, await egress.vet(senderOf('tenant-a'), url, null))
  if (status !== 302) throw new Error(`The redirect was not met: ${String(status)}`)
  await egress.close()
})

// Past vet() altogether: where the socket is made, the rule is asked once more.
reached['past the vetting'] = await count(async () => {
  const rule = { trust: () => trustOf([]), permits: isPublic }
  for (const address of FORBIDDEN) await dialled(address, rule.permits)
})

control['behind a name'] = await count(async () => {
  const allow = ['0.0.0.0/0', '::/0', ...FORBIDDEN_IPV6].map((it) => parseDestination(it)!)
  for (const address of FORBIDDEN) {
    const egress = gateway({ resolve: async () => [address], allow })
    await send(egress, await egress.vet(senderOf('tenant-a'), new URL('https://name.test/'), null))
    await egress.close()
  }
})
control['past the vetting'] = await count(async () => {
  for (const address of FORBIDDEN) await dialled(address, () => true)
})

const outcome: AddressProbeOutcome = {
  forms: urls.length,
  noUrls,
  let: let_,
  rules,
  reached,
  control,
}
process.stdout.write(JSON.stringify(outcome))
process.exit(0)

function gateway(settings: Partial<EgressSettings>): UndiciEgress {
  return new UndiciEgress({ allow: [], extraAuthorities: [testAuthority()], ...settings })
}

/** Counts the connections that forbidden addresses accept while `attack` goes on. */
async function count(attack: () => Promise<void>): Promise<number> {
  accepted.length = 0
  await attack()
  // Once a later connection is accepted, every earlier one has been too.
  await dialled('8.8.8.8', () => true)
  return accepted.filter((it) => !PUBLIC.includes(it)).length
}

async function attempt(egress: Egress, url: string): Promise<void> {
  try {
    const route = await egress.vet(senderOf('tenant-a'), new URL(url), null)
    let_.push(url)
    await send(egress, route)
  } catch (error) {
    if (!(error instanceof EgressRefusal) && !(error instanceof EgressFailure)) throw error
    const rule = error instanceof EgressRefusal ? error.rule : error.fault
    rules[rule] = (rules[rule] ?? 0) + 1
  }
}

/** Returns the status, or how it failed. */
async function send(egress: Egress, route: Awaited<ReturnType<Egress['vet']>>): Promise<unknown> {
  let status: unknown
  const request = { method: 'GET', headers: [], body: null, timeoutMs: 600_000 }
  const receiver = {
    headerSection: (it: number) => void (status = it),
    data: () => true,
    end: () => {},
  }
  try {
    await egress.send(route, request, receiver).done
  } catch (error) {
    if (!(error instanceof EgressFailure)) throw error
    return error.fault
  }
  return status
}

async function dialled(
  address: string,
  permits: (endpoint: unknown, it: string) => boolean,
): Promise<void> {
  const endpoint = endpointOf(new URL('http://name.test:8080/'))
  const { promise, resolve } = Promise.withResolvers<void>()
  const settings = { trust: () => trustOf([]), permits }
  dial(
    { endpoint: endpoint, addresses: [address] },
    settings,
    { session: undefined },
    (_, socket) => {
      if (socket === null) resolve()
      else
        socket
          .on('close', () => resolve())
          .on('error', () => {})
          .resume()
    },
  )
  await promise
}

function isPublic(_: unknown, address: string): boolean {
  const ip = parseIpAddress(address)
  return ip !== null && specialPurpose(ip) === null
}
