import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { noBubblewrap } from '../../../test/kit/bubblewrap.ts'
import { lacksNamespaces } from '../../../test/kit/programs.ts'
import { readableInstallation } from '../../../test/kit/readable-installation.ts'
import { temporaryFolder } from '../../../test/kit/running-vault.ts'
import { GuestProcess } from './guest-process.ts'
import { ResultReader } from './result-reader.ts'
import type { GuestFiles } from './guest-files.ts'
import { prepareGuestInstallation } from './guest-installation.ts'
import { findBubblewrap, hardened } from './hardened.ts'
import { NO_WAY } from './no-way.ts'
import { runtimeFiles } from './runtime-files.ts'
import { nextOutput } from '../../../test/kit/output-of.ts'

const PROBE = fileURLToPath(new URL('../../../test/kit/jailed-code.probe.ts', import.meta.url))

const skip = noBubblewrap()

describe('hardened()', { skip }, () => {
  test('has the guest in namespaces of its own, with nothing but what it is made of', async () => {
    const [guest, files] = await prewarmed()
    try {
      const own = `/proc/${guest.id}`
      for (const it of ['cgroup', 'ipc', 'mnt', 'net', 'pid', 'user', 'uts']) {
        assert.notEqual(readlinkSync(`${own}/ns/${it}`), readlinkSync(`/proc/self/ns/${it}`), it)
      }
      const interfaces = readFileSync(`${own}/net/dev`, 'utf8').trim().split('\n').slice(2)
      assert.deepEqual(
        interfaces.map((it) => it.split(':')[0]!.trim()),
        ['lo'],
      )

      const mounts = readFileSync(`${own}/mountinfo`, 'utf8').trim().split('\n')
      const places = mounts
        .map((it) => it.split(' '))
        .map(([, , , , where, how]) => ({ where, how }))
      for (const { where, how } of places) {
        if (where !== '/dev/null') assert.match(how!, /^ro\b/, where)
      }
      for (const it of ['/proc', '/tmp', '/home', '/etc']) {
        assert.ok(!places.some(({ where }) => where === it), it)
      }

      const status = readFileSync(`${own}/status`, 'utf8')
      for (const it of ['CapPrm', 'CapEff', 'CapBnd', 'CapAmb']) {
        assert.match(status, new RegExp(`^${it}:\\t0+$`, 'm'))
      }
      assert.match(status, /^NoNewPrivs:\t1$/m)
      assert.match(status, /^Seccomp:\t2$/m)
      assert.equal(readFileSync(`${own}/oom_score_adj`, 'utf8').trim(), '1000')
      assert.deepEqual(schedulingOf(guest.id!), { niceness: 19, policy: SCHED_IDLE })
      assert.equal(/^PPid:\t(\d+)/m.exec(status)![1], bubblewraps().join())
    } finally {
      guest.kill()
      await guest.ended
      files.remove()
    }
  })

  test('stops the guest and lets it go on, and has it end with the process that began it', async () => {
    const [guest, files] = await prewarmed()
    guest.freeze()
    await until(() => stateOf(guest.id!) === 'T')
    guest.thaw()
    await until(() => stateOf(guest.id!) !== 'T')
    guest.freeze()
    process.kill(bubblewraps()[0]!, 'SIGKILL')
    await until(() => stateOf(guest.id!) === null)
    await guest.ended
    files.remove()
  })

  test('may be killed and frozen while it ends', async () => {
    for (let round = 0; round < 4; round++) {
      const [guest, files] = await prewarmed()
      do guest.kill()
      while (statOf(guest.id!) !== '')
      guest.freeze()
      await guest.ended
      files.remove()
    }
  })
})

describe('a service at the level hardened', { skip }, () => {
  test('runs code for an ordinary user, as that user', (t) => {
    const user = process.getuid!() === 0 ? 1500 : process.getuid!()
    const { node, probe } = readableInstallation(t)
    const child = spawnSync(
      node,
      [probe, 'module.exports = () => [process.pid, process.getuid()]'],
      {
        encoding: 'utf8',
        env: { LEVEL: 'hardened' },
        uid: user,
        gid: process.getgid!() || 1500,
      },
    )
    assert.equal(child.status, 0, child.stderr)
    assert.deepEqual(JSON.parse(child.stdout), { kind: 'returned', result: [1, user] })
  })

  test('runs code for root as a user that no other process has, and else as the user of the service', async (t) => {
    const { node, probe } = readableInstallation(t)
    const args = [probe, 'module.exports = () => process.getuid()', '{}', 'linger']
    const service = spawn(node, args, { env: { LEVEL: 'hardened' } })
    t.after(() => service.kill('SIGKILL'))
    const said = await nextOutput(service)
    const { result: inside } = JSON.parse(String(said))
    const guests = bubblewraps(service.pid).flatMap(childrenOf)
    const users = guests.map((it) => userOf(it))
    assert.ok(users.includes(inside), `${inside} is not one of ${users.join()}`)
    if (process.getuid!() === 0) assert.ok(users.every((it) => it >= 0x70000000))
    else assert.ok(users.every((it) => it === process.getuid!()))
    assert.equal(new Set(users).size, process.getuid!() === 0 ? users.length : 1)
  })

  test('runs code for root as a user that no other process has where the temporary folder is closed, and else as the user of the service', (t) => {
    const closed = temporaryFolder(t)
    const args = [PROBE, 'module.exports = () => process.getuid()']
    const child = spawnSync(process.execPath, args, {
      encoding: 'utf8',
      env: { LEVEL: 'hardened', TMPDIR: closed },
    })
    const { kind, result } = JSON.parse(child.stdout)
    assert.equal(kind, 'returned', child.stderr)
    if (process.getuid!() === 0) assert.ok(result >= 0x70000000, `is ${result}`)
    else assert.equal(result, process.getuid!())
  })

  const skip = lacksNamespaces(['--user', '--map-root-user'], 'true')
  test(
    'runs nothing where the kernel refuses it namespaces, and says how to get them',
    { skip },
    () => {
      const refuse = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$0" "$@"'
      const program = [process.execPath, PROBE, 'module.exports = () => 1']
      const child = spawnSync(
        'unshare',
        ['--user', '--map-root-user', 'sh', '-c', refuse, ...program],
        { encoding: 'utf8', env: { LEVEL: 'hardened', PATH: '/usr/sbin:/usr/bin:/sbin:/bin' } },
      )
      const { kind, flaw } = JSON.parse(child.stdout)
      assert.equal(kind, 'flaw', child.stderr)
      assert.match(flaw, /^bubblewrap is refused namespaces.*user\.max_user_namespaces above 0/)
    },
  )

  test('takes its guests along when it is killed, even those that are stopped', async () => {
    const args = [PROBE, 'module.exports = () => 1', '{}', 'linger']
    const service = spawn(process.execPath, args, { env: { LEVEL: 'hardened' } })
    await once(service.stdout, 'data')
    const guests = bubblewraps(service.pid).flatMap(childrenOf)
    await until(() => guests.some((it) => stateOf(it) === 'T'))
    service.kill('SIGKILL')
    await until(() => guests.every((it) => stateOf(it) === null))
  })
})

test('runtimeFiles() finds the program, what loads it and what it is linked to', () => {
  const files = runtimeFiles()
  assert.equal(files[0], process.execPath)
  const mapped = readFileSync('/proc/self/maps', 'utf8')
  assert.ok(files.some((it) => /\/ld-/.test(it)))
  assert.equal(
    files.some((it) => /\/libc\.so/.test(it)),
    /\/libc\.so/.test(mapped),
  )
  assert.throws(() => runtimeFiles('/etc/passwd'), /no program/)
})

const SET_UP = {
  builtIns: [],
  packages: {},
  notInstalled: {},
  hidden: [],
  checks: true,
  withoutSockets: false,
  authorities: [],
  outputBytesMax: 0,
  resultBytesMax: 1_000,
  errorBytesMax: 1_000,
}

async function prewarmed(): Promise<[GuestProcess, GuestFiles]> {
  const none = { homes: {}, folders: [], aliases: [], links: [] }
  const installation = prepareGuestInstallation('hardened', none, findBubblewrap())
  const { files } = installation
  const { main, folder } = files
  const walls = hardened({ ...installation, name: 'node', main, readable: [folder], aliases: [] })
  const guest = new GuestProcess({
    results: new ResultReader(),
    walls,
    waysOut: NO_WAY,
    output: null,
    redacts: true,
    hide: (text) => text,
    setUp: SET_UP,
  })
  await guest.ready
  return [guest, files]
}

/** Returns the ids of the processes started by a process. */
function bubblewraps(of = process.pid): number[] {
  return childrenOf(of).filter((it) => statOf(it).includes('(bwrap)'))
}

function childrenOf(id: number): number[] {
  return readdirSync('/proc')
    .filter((it) => /^\d+$/.test(it))
    .map(Number)
    .filter((it) => new RegExp(`\\) \\w ${id} `).test(statOf(it)))
}

/** Returns the kernel's process state, `T` for stopped; null for a process that does not exist or is a zombie. */
function stateOf(id: number): string | null {
  const [, state = 'X'] = /\) (\w)/.exec(statOf(id)) ?? []
  return state === 'Z' || state === 'X' ? null : state
}

const SCHED_IDLE = 5

/** Reads fields 19 and 41 of /proc/pid/stat, proc_pid_stat(5). */
function schedulingOf(id: number): { niceness: number; policy: number } {
  const fields = statOf(id).split(') ')[1]!.split(' ')
  return { niceness: Number(fields[19 - 3]), policy: Number(fields[41 - 3]) }
}

function userOf(id: number): number {
  return Number(/^Uid:\t(\d+)/m.exec(readFileSync(`/proc/${id}/status`, 'utf8'))![1])
}

function statOf(id: number): string {
  try {
    return readFileSync(`/proc/${id}/stat`, 'latin1')
  } catch {
    return ''
  }
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await sleep(5)
}
