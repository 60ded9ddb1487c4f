/**
 * No attack by hostile code succeeds behind the walls, though each succeeds without them. The attacks run
 * with the runner's own checks disabled, as root and as an unprivileged user, in disposable namespaces.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { ReactorLevel } from '../../../src/ports/reactor-runner.ts'
import { JAVASCRIPT_ATTACKS } from './javascript-attacks.ts'
import { lacksNamespaces, lacksPrograms } from '../../kit/programs.ts'
import { readableInstallation, type Installation } from '../../kit/readable-installation.ts'
import type { JailProbeOutcome } from './jail.probe.ts'
import { NATIVE_ATTACKS } from './native-attacks.ts'

const PROBE = fileURLToPath(new URL('jail.probe.ts', import.meta.url))
const HERE: Installation = { node: process.execPath, probe: PROBE }
const ATTACKS = [...JAVASCRIPT_ATTACKS, ...NATIVE_ATTACKS]

const SOMEBODY = 'setpriv --reuid 1500 --regid 1500 --clear-groups'
const root = process.getuid!() === 0
const NAMESPACES = [
  ...(root ? [] : ['--user', '--map-root-user']),
  '--net',
  '--mount',
  '--ipc',
  '--pid',
  '--fork',
  '--mount-proc',
]
const NETWORK = [
  'ip link set lo up',
  'ip address add 169.254.169.254/32 dev lo',
  'ip address add 10.0.0.5/32 dev lo',
]

/** Without root there is one user only, whom the namespace takes for its root. */
const USERS = { 'run by root': '', ...(root ? { 'run by anybody': SOMEBODY } : {}) }

/** Tests that no attack succeeds at `level`, for any user running the service; and, once, that each succeeds without walls. */
export function describeAttacks(level: ReactorLevel, noLevel: string | false = false): void {
  const skip = noLevel || lacksNamespaces(NAMESPACES, NETWORK.join(' && ')) || noOtherUser()
  // All users at once: they spend most of their time waiting.
  const outcomes = new Map<string, Promise<JailProbeOutcome>>()
  for (const [who, prefix] of Object.entries(USERS)) {
    describe(`behind the walls of ${level} in a service ${who}, no code can`, { skip }, () => {
      const inTheOpen = isInTheOpen(level, prefix)
      let outcome: JailProbeOutcome
      before(async () => {
        for (const it of Object.values(USERS)) {
          if (outcomes.has(it)) continue
          const probed = probe(level, it, isInTheOpen(level, it))
          outcomes.set(it, probed)
          // The suite that awaits it reports the failure.
          probed.catch(() => {})
        }
        outcome = await outcomes.get(prefix)!
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

/** Whether the attacks are made without walls, too: once is enough, since then the level makes no difference. */
function isInTheOpen(level: ReactorLevel, prefix: string): boolean {
  return prefix === '' && level === 'jail'
}

/** Says which program root lacks to run the service as another user, or false; other users need none. */
function noOtherUser(): string | false {
  return root && lacksPrograms('setpriv')
}

/** In a network that has nothing but addresses of this machine, and a namespace of processes that ends with it. */
async function probe(
  level: ReactorLevel,
  prefix: string,
  inTheOpen: boolean,
): Promise<JailProbeOutcome> {
  const removals: (() => void)[] = []
  const after = (remove: () => void): void => void removals.push(remove)
  const installed = prefix === '' ? HERE : readableInstallation({ after }, PROBE)
  const world = [...NETWORK, `exec ${prefix} "$0" "$1"`].join(' && ')
  const command = ['sh', '-c', world, installed.node, installed.probe]
  const child = spawn('unshare', [...NAMESPACES, ...command], {
    cwd: '/',
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
  const [status] = await once(child, 'close')
  for (const it of removals) it()
  assert.equal(status, 0, complaint)
  return JSON.parse(said) as JailProbeOutcome
}
