import { Sensitive } from '../../base/sensitive.ts'
import { parseStrictJson } from '../../base/strict-json.ts'
import type { ReactorLevel, ReactorOutcome, SandboxRun } from '../../ports/reactor-runner.ts'
import { GUEST_HOST } from './launch/launch-plan.ts'

/** Timeout of the self-test, in milliseconds. */
export const WALLS_TEST_MS_MAX = 10_000

/** The outcome of the test. */
export interface TestedWalls {
  /** In a sentence or two for the operator; null when the walls hold. */
  readonly flaw: string | null
  /** The user that code inside has; null if that is unknown. */
  readonly user: number | null
}

/**
 * Runs our own code inside the walls that attempts everything they must prevent, and returns what it reached.
 */
export async function testWalls(
  run: (it: SandboxRun) => Promise<ReactorOutcome>,
  level: ReactorLevel,
  timeoutMs = WALLS_TEST_MS_MAX,
): Promise<TestedWalls> {
  if (process.platform !== 'linux' && level !== 'portable') {
    return flawed(`they need Linux, and this is ${process.platform}`)
  }
  let outcome: ReactorOutcome
  try {
    const args = JSON.stringify({ parent: process.pid, level })
    outcome = await run({ ...SELF_TEST_RUN, args: new Sensitive(args), timeoutMs })
  } catch (error) {
    return flawed(explain(messagesOf(error)))
  }
  if (outcome.kind !== 'returned') return flawed(`the test of them ended as ${outcome.kind}`)
  const { reached, user } = parseStrictJson(outcome.result.reveal()) as {
    readonly reached: string[]
    readonly user: number | null
  }
  if (reached.length === 0) return { flaw: null, user }
  const could = reached.join(', ')
  return flawed(`code inside could ${could}: this system does not enforce what it promised to`)
}

function flawed(flaw: string): TestedWalls {
  return { flaw, user: null }
}

/** Translates the launcher's error into what is missing and how to get it. */
function explain(complaint: string): string {
  for (const [pattern, explanation] of EXPLANATIONS) {
    const found = pattern.exec(complaint)
    if (found !== null) return explanation.replace('$1', found[1] ?? found[2] ?? '')
  }
  return `they cannot be built: ${complaint}`
}

const EXPLANATIONS: readonly (readonly [RegExp, string])[] = [
  [
    // The launcher's message, or bubblewrap's.
    /EACCES: permission denied, open '([^']+)'|bwrap: Can't find source path (.+): Permission denied/,
    'guests have no privileges, not even those of root, and cannot read $1: install the service where every user may read it, such as /opt, or run it as the owner of that folder',
  ],
  [
    /landlock_/,
    'Landlock is missing: it takes Linux 5.13 or later with landlock among its security modules, and, in a container, a seccomp profile that lets the landlock calls through',
  ],
  [
    /seccomp:/,
    'filters of system calls (seccomp) are missing: it takes a kernel with CONFIG_SECCOMP_FILTER, and a container that does not forbid them',
  ],
  [
    /bwrap (?:ENOENT|EACCES)/,
    'bubblewrap is missing, which the level hardened is made of: install the package bubblewrap (the program bwrap), or choose the level jail',
  ],
  [
    /bwrap: .*(?:namespace|uid map|gid map|Permission denied|Operation not permitted)/i,
    'bubblewrap is refused namespaces of its own: it takes user.max_user_namespaces above 0, kernel.unprivileged_userns_clone=1 where there is such a setting (Debian), kernel.apparmor_restrict_unprivileged_userns=0 or a profile for bwrap (Ubuntu), and, in a container, a seccomp profile that lets namespaces be made; or choose the level jail',
  ],
  [
    /namespaces: shared are ([\w, ]+)/,
    'bubblewrap leaves something of the machine to be seen ($1): it takes version 0.4 or later of it',
  ],
  [
    /spawn EPERM/,
    'the service is root without the capabilities SETUID and SETGID, by which guests become nobody: give it those, or have it run by an ordinary user',
  ],
  [
    /^(?!.*bwrap: ).*koffi/is,
    'the package koffi has no binary here: install with optional dependencies, or add the one for this system such as @koromix/koffi-linux-x64 (x64 or arm64, glibc or musl)',
  ],
]

function messagesOf(error: unknown): string {
  const messages: string[] = []
  for (let it = error; it instanceof Error; it = it.cause) messages.push(it.message)
  return messages.join(': ')
}

/** Each attempt is named after what it would achieve. */
const ATTEMPTS = `
  const fs = require('fs'), child = require('child_process'), dgram = require('dgram'), net = require('net')
  const listening = (it) => new Promise((resolve, reject) => it.once('error', reject).once('listening', resolve))
  const attempts = (parent) => ({
    'read files': () => fs.readFileSync('/etc/passwd'),
    'list folders': () => fs.readdirSync('/'),
    'look into the service': () => fs.readFileSync('/proc/' + parent + '/environ'),
    'write files': () => {
      // /tmp is shared: never follow another user's link or overwrite another user's file.
      const file = '/tmp/symbolon-self-test-' + require('crypto').randomUUID()
      fs.writeFileSync(file, '', { flag: 'wx' })
      // It was written, whether or not it can be removed.
      try { fs.rmSync(file) } catch {}
    },
    'change files': () => fs.chmodSync(process.execPath, fs.statSync(process.execPath).mode & 0o7777),
    'start programs': () => { if (child.spawnSync(process.execPath, ['-v']).error) throw 0 },
    // In a namespace of its own, the first process is oneself, whatever the service is outside.
    'signal the service': () => { if (parent === process.pid) throw 0; process.kill(parent, 0) },
    'send packets': () => listening(dgram.createSocket('udp4').bind(0, '127.0.0.1')),
    'open ports': () => listening(net.createServer().listen(0, '127.0.0.1')),
    'connect to sockets': () => listening(net.createServer().listen('\\0symbolon-self-test')),
  })
  const seeing = (what) => { if (!what) throw 0 }
  const ofNamespaces = {
    'see other processes': () => seeing(process.pid !== 1 || process.ppid !== 0),
    'see what lies beside it': () => fs.statSync('/proc/1'),
    'see whose machine it is on': () => seeing(require('os').hostname() !== '${GUEST_HOST}'),
  }
  module.exports = async ({ args }) => {
    const reached = []
    const all = { ...attempts(args.parent), ...(args.level === 'hardened' && ofNamespaces) }
    for (const [what, attempt] of Object.entries(all)) {
      try { await attempt(); reached.push(what) } catch {}
    }
    return { reached, user: process.getuid?.() ?? null }
  }`

const SELF_TEST_RUN: Omit<SandboxRun, 'args' | 'timeoutMs'> = {
  tenantId: 'self-test',
  reactorId: 'self-test',
  version: '1',
  code: ATTEMPTS,
  configuration: new Sensitive('{}'),
  apiKey: null,
  destinations: null,
}
