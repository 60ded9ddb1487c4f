/**
 * Whatever hostile code tries from behind the walls, nothing comes of it, though all of it succeeds where there are
 * none: with no check of ours in the way, as root and as nobody in particular, in namespaces to be thrown away.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { ReactorLevel } from '../../../src/world/reactor-runner.ts'
import { JAVASCRIPT_ATTACKS } from './javascript-attacks.ts'
import type { Outcome } from './jail.probe.ts'
import { NATIVE_ATTACKS } from './native-attacks.ts'

const PROBE = fileURLToPath(new URL('jail.probe.ts', import.meta.url))
const ATTACKS = [...JAVASCRIPT_ATTACKS, ...NATIVE_ATTACKS]

const SOMEBODY = 'setpriv --reuid 1500 --regid 1500 --clear-groups'
const NAMESPACES = ['--net', '--mount', '--ipc', '--pid', '--fork', '--mount-proc']
const root = process.getuid!() === 0

/** Without root there is one user only, whom the namespace takes for its root. */
const USERS = { 'run by root': '', ...(root ? { 'run by anybody': SOMEBODY } : {}) }

/** Tests that no attack succeeds at `level`, whoever runs the service; once also that each does without walls. */
export function describeAttacks(level: ReactorLevel, skip: string | false = false): void {
  for (const [who, prefix] of Object.entries(USERS)) {
    describe(`behind the walls of ${level} in a service ${who}, no code can`, { skip }, () => {
      // Without walls, the level makes no difference.
      const inTheOpen = prefix === '' && level === 'jail'
      let outcome: Outcome
      before(async () => {
        outcome = await probe(level, prefix, inTheOpen)
      })

      for (const { name, byRoot } of ATTACKS) {
        test(name, () => {
          assert.equal(outcome.jailed[name], false, 'it succeeds')
          if (inTheOpen && (byRoot !== true || root)) {
            assert.equal(
              outcome.bare[name],
              true,
              'it succeeds nowhere, so that this shows nothing',
            )
          }
        })
      }

      test('keep the walls from being found good, or others from running', () => {
        assert.equal(outcome.flaw, null)
        assert.ok(outcome.healthy)
      })
    })
  }
}

/** In a network that has nothing but addresses of this machine, and a namespace of processes that ends with it. */
async function probe(level: ReactorLevel, prefix: string, inTheOpen: boolean): Promise<Outcome> {
  const world = [
    'ip link set lo up',
    'ip address add 169.254.169.254/32 dev lo',
    'ip address add 10.0.0.5/32 dev lo',
    `exec ${prefix} "$0" "$1"`,
  ].join(' && ')
  const user = root ? [] : ['--user', '--map-root-user']
  const command = ['sh', '-c', world, process.execPath, PROBE]
  const child = spawn('unshare', [...user, ...NAMESPACES, ...command], {
    env: {
      CANARY: 'canary-3f1c',
      LEVEL: level,
      IN_THE_OPEN: inTheOpen ? 'too' : '',
      PATH: process.env['PATH'],
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let [said, complaint] = ['', '']
  child.stdout.on('data', (it) => (said += it))
  child.stderr.on('data', (it) => (complaint += it))
  child.on('error', ({ message }) => (complaint += message))
  const [status] = await once(child, 'close')
  if (status === 0) return JSON.parse(said) as Outcome
  throw new Error(
    `This test needs namespaces of its own, by unshare and ip: run it as root, or where users may have some.\n${complaint}`,
  )
}
