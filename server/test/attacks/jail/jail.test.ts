/**
 * Whatever hostile code tries from behind the walls, nothing comes of it, though all of it succeeds where there are
 * none: with no check of ours in the way, as root and as nobody in particular, in namespaces to be thrown away.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { JAVASCRIPT_ATTACKS } from './javascript-attacks.ts'
import type { Outcome } from './jail.probe.ts'
import { NATIVE_ATTACKS } from './native-attacks.ts'

const PROBE = fileURLToPath(new URL('jail.probe.ts', import.meta.url))
const ATTACKS = [...JAVASCRIPT_ATTACKS, ...NATIVE_ATTACKS]

const SOMEBODY = 'setpriv --reuid 1500 --regid 1500 --clear-groups'
const NAMESPACES = ['--net', '--mount', '--ipc', '--pid', '--fork', '--mount-proc']
const root = process.getuid!() === 0

for (const [who, prefix] of Object.entries({
  'a service run by root': '',
  // Without root there is one user only, whom the namespace takes for its root.
  ...(root ? { 'a service run by anybody': SOMEBODY } : {}),
})) {
  describe(`behind the walls of ${who}, no code can`, () => {
    const { flaw, bare, jailed, healthy } = probe(prefix)

    for (const { name, byRoot } of ATTACKS) {
      test(name, () => {
        assert.equal(jailed[name], false, 'it succeeds')
        if (byRoot !== true || (root && prefix === '')) {
          assert.equal(bare[name], true, 'it succeeds nowhere, so that this shows nothing')
        }
      })
    }

    test('keep the walls from being found good, or others from running', () => {
      assert.equal(flaw, null)
      assert.ok(healthy)
    })
  })
}

/** In a network that has nothing but addresses of this machine, and a namespace of processes that ends with it. */
function probe(prefix: string): Outcome {
  const world = [
    'ip link set lo up',
    'ip address add 169.254.169.254/32 dev lo',
    'ip address add 10.0.0.5/32 dev lo',
    `exec ${prefix} "$0" "$1"`,
  ].join(' && ')
  const { status, stdout, stderr, error } = spawnSync(
    'unshare',
    [
      ...(root ? [] : ['--user', '--map-root-user']),
      ...NAMESPACES,
      'sh',
      '-c',
      world,
      process.execPath,
      PROBE,
    ],
    { encoding: 'utf8', env: { CANARY: 'canary-3f1c', PATH: process.env['PATH'] } },
  )
  if (status === 0) return JSON.parse(stdout) as Outcome
  throw new Error(
    `This test needs namespaces of its own, by unshare and ip: run it as root, or where users may have some.\n${error?.message ?? stderr}`,
  )
}
