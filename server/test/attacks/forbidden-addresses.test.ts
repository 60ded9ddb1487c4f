/**
 * Whatever address is forbidden, and however it is written or hidden, no connection is made to it: in a network
 * namespace where every address leads to a listener that would see it.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { lacksNamespaces } from '../kit/programs.ts'
import type { AddressProbeOutcome } from './forbidden-addresses.probe.ts'
import { FORBIDDEN_IPV4, FORBIDDEN_IPV6 } from './forbidden-forms.ts'

const PROBE = fileURLToPath(new URL('forbidden-addresses.probe.ts', import.meta.url))

/** Every address is made one of this machine's, in a network that has nothing else in it. */
const NETWORK = [
  'ip link set lo up',
  'ip route add local 0.0.0.0/0 dev lo',
  'ip -6 route add local ::/0 dev lo',
].join(' && ')

/** Flags of `unshare`: for root, and for other users. */
const NAMESPACES = ['-n', '-Urn']
const namespace = NAMESPACES.find((it) => lacksNamespaces([it], NETWORK) === false)
const skip = namespace === undefined && lacksNamespaces(NAMESPACES.slice(-1), NETWORK)

describe('the egress gateway', { skip }, () => {
  let outcome: AddressProbeOutcome
  before(() => {
    outcome = probe()
  })

  test('lets none of at least four hundred ways to write a forbidden address pass', () => {
    assert.ok(
      outcome.forms - outcome.noUrls >= 400,
      `${outcome.forms} forms, ${outcome.noUrls} no URLs`,
    )
    assert.deepEqual(outcome.let, [])
    for (const rule of ['literal', 'scheme', 'credentials', 'address']) {
      assert.ok((outcome.rules[rule] ?? 0) > 0, `nothing was refused by ${rule}`)
    }
  })

  const attacks = [
    'written otherwise',
    'behind a name',
    'behind a name, inside IPv6',
    'behind a name, as a resolver may write it',
    'behind a name that changes',
    'behind a redirect',
    'past the vetting',
  ]
  for (const attack of attacks) {
    test(`connects to no forbidden address ${attack}`, () => {
      assert.equal(outcome.reached[attack], 0)
    })
  }

  test('would be seen connecting to every one of them', () => {
    const all = FORBIDDEN_IPV4.length + FORBIDDEN_IPV6.length
    assert.deepEqual(outcome.control, { 'behind a name': all, 'past the vetting': all })
  })
})

function probe(): AddressProbeOutcome {
  const { status, stdout, stderr } = spawnSync(
    'unshare',
    [namespace!, '--', 'sh', '-c', `${NETWORK} && exec "$0" "$1"`, process.execPath, PROBE],
    { encoding: 'utf8' },
  )
  assert.equal(status, 0, stderr)
  return JSON.parse(stdout) as AddressProbeOutcome
}
