/**
 * What is exempt for one tenant is out of reach for the others, by everything that sends for them: in a network namespace where
 * every address leads to a listener that would see it.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { lacksNamespaces } from '../kit/programs.ts'
import type { TenantExemptionsOutcome } from './tenant-exemptions.probe.ts'

const PROBE = fileURLToPath(new URL('tenant-exemptions.probe.ts', import.meta.url))

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

const ATTACKS = [
  'by its address',
  'by a name',
  'by a connection that is there',
  'by Node’s own client',
  'by a proxy with its key',
  'by a proxy without a key',
  'by a callback',
  'by a callback whose name changes',
  'by code, net',
  'by code, http',
  'by code, https',
  'by code, tls',
  'by code, fetch by address',
  'by code, fetch by name',
]

describe('an address that is exempt for one tenant', { skip }, () => {
  let outcome: TenantExemptionsOutcome
  before(() => {
    outcome = probe()
  })

  for (const attack of ATTACKS) {
    test(`is not reached ${attack} for another tenant`, () => {
      assert.equal(outcome.forOne.second[attack], 0)
      assert.ok(outcome.forOne.first[attack]! > 0, 'nor for the tenant itself')
      assert.ok(outcome.forAll.second[attack]! > 0, 'nor if it is exempt for all')
    })
  }

  test('is reached by a redirect for neither', () => {
    const { forOne, forAll } = outcome
    for (const { first, second } of [forOne, forAll]) {
      assert.deepEqual([first['by a redirect'], second['by a redirect']], [0, 0])
    }
  })
})

function probe(): TenantExemptionsOutcome {
  const { status, stdout, stderr } = spawnSync(
    'unshare',
    [namespace!, '--', 'sh', '-c', `${NETWORK} && exec "$0" "$1"`, process.execPath, PROBE],
    { encoding: 'utf8' },
  )
  assert.equal(status, 0, stderr)
  return JSON.parse(stdout) as TenantExemptionsOutcome
}
