import { spawnSync } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'

/** Programs that tests need and a machine may lack, with their Debian packages. */
export const PACKAGES = {
  WebKitWebDriver: 'webkit2gtk-driver',
  Xvfb: 'xvfb',
  bwrap: 'bubblewrap',
  chromium: 'chromium',
  curl: 'curl',
  faketime: 'faketime',
  'firefox-esr': 'firefox-esr',
  git: 'git',
  ip: 'iproute2',
  mkfifo: 'coreutils',
  npm: 'npm',
  prlimit: 'util-linux',
  python3: 'python3',
  setpriv: 'util-linux',
  unshare: 'util-linux',
} as const

type Program = keyof typeof PACKAGES

/**
 * Returns which of `programs` are missing and how to install them, or false if all are installed. For the option `skip` of
 * tests. A test may be skipped only for something the machine lacks: a program, namespaces or IPv6.
 */
export function lacksPrograms(...programs: readonly Program[]): string | false {
  const lacking = programs.filter((it) => !isInstalled(it))
  return lacking.length === 0 ? false : installing(lacking)
}

export function installing(programs: readonly Program[]): string {
  const packages = new Set(programs.map((it) => PACKAGES[it]))
  return `${programs.join(' and ')} must be installed: apt-get install ${[...packages].join(' ')}`
}

/** Returns the reason to skip if npm is missing, or older than the version a test needs; otherwise false. */
export function lacksNpm([major, minor]: readonly [major: number, minor: number]): string | false {
  const lacking = lacksPrograms('npm')
  if (lacking !== false) return lacking
  const version = spawnSync('npm', ['--version'], { encoding: 'utf8' }).stdout.trim()
  const [ownMajor = 0, ownMinor = 0] = version.split('.').map(Number)
  if (ownMajor > major || (ownMajor === major && ownMinor >= minor)) return false
  return `npm ${major}.${minor} or later must be installed, this is ${version}`
}

/**
 * Returns the reason tests cannot have their own namespaces on this machine, or false if they can: either `unshare` with
 * these flags is refused, or `setUp`, a shell command that sets up their network with `ip`.
 */
export function lacksNamespaces(flags: readonly string[], setUp: string): string | false {
  const lacking = lacksPrograms('ip', 'unshare')
  if (lacking !== false) return lacking
  const command = [...flags, '--', 'sh', '-c', setUp]
  const { status, stderr } = spawnSync('unshare', command, { encoding: 'utf8' })
  if (status === 0) return false
  return `unshare ${flags.join(' ')} must be allowed, to root or to all users: ${stderr.trim()}`
}

/** Returns the reason tests cannot mount a file system of their own on this machine, or false if they can. */
export function lacksMounts(): string | false {
  const lacking = lacksPrograms('unshare')
  if (lacking !== false) return lacking
  const command = ['-rm', '--', 'mount', '-t', 'tmpfs', 'none', '/mnt']
  const { status, stderr } = spawnSync('unshare', command, { encoding: 'utf8' })
  return status === 0 ? false : `unshare -rm must be allowed, with mounts: ${stderr.trim()}`
}

/** Returns the reason tests cannot be root of a namespace of their own on this machine, or false if they can. */
export function lacksUserNamespaces(): string | false {
  const lacking = lacksPrograms('setpriv', 'unshare')
  if (lacking !== false) return lacking
  const { status, stderr } = spawnSync('unshare', ['-r', 'true'], { encoding: 'utf8' })
  return status === 0 ? false : `unshare -r must be allowed: ${stderr.trim()}`
}

/** Returns the reason to skip a test that listens on both families of loopback addresses on this machine, or false. */
export function lacksIpv6(): string | false {
  const addresses = Object.values(networkInterfaces()).flatMap((it) => it ?? [])
  if (addresses.some((it) => it.address === '::1')) return false
  return 'needs the address ::1: sysctl net.ipv6.conf.lo.disable_ipv6=0'
}

function isInstalled(program: Program): boolean {
  return findProgram(program) !== undefined
}

/** Returns the path of an installed program, for libraries that look for none. */
export function pathOfProgram(program: Program): string {
  const found = findProgram(program)
  if (found === undefined) throw new Error(installing([program]))
  return found
}

function findProgram(program: Program): string | undefined {
  const paths = (process.env['PATH'] ?? '').split(':').map((it) => join(it, program))
  return paths.find((it) => {
    try {
      accessSync(it, constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}
