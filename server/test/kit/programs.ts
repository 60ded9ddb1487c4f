import { spawnSync } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'

/** Programs that tests start and a machine may lack, by the Debian package that has them. */
const PACKAGES = {
  curl: 'curl',
  ip: 'iproute2',
  mount: 'mount',
  npm: 'npm',
  setpriv: 'util-linux',
  unshare: 'util-linux',
} as const

export type Program = keyof typeof PACKAGES

/** Why a test that starts these programs is skipped on this machine, or false. */
export function lacksPrograms(...programs: readonly Program[]): string | false {
  const lacking = programs.filter((it) => !isInstalled(it))
  if (lacking.length === 0) return false
  const packages = new Set(lacking.map((it) => PACKAGES[it]))
  return `needs ${lacking.join(' and ')}: apt-get install ${[...packages].join(' ')}`
}

/**
 * Why a test that runs in namespaces of its own is skipped on this machine, or false: `unshare` with these flags is refused,
 * or what makes their network is, `setUp`, a line for the shell that needs `ip`.
 */
export function lacksNamespaces(flags: readonly string[], setUp: string): string | false {
  const lacking = lacksPrograms('ip', 'unshare')
  if (lacking !== false) return lacking
  const command = [...flags, '--', 'sh', '-c', setUp]
  const { status, stderr } = spawnSync('unshare', command, { encoding: 'utf8' })
  if (status === 0) return false
  return `needs unshare ${flags.join(' ')}, as root or where users may have namespaces: ${stderr.trim()}`
}

/** Why a test that listens on both families of loopback addresses is skipped on this machine, or false. */
export function lacksIpv6(): string | false {
  const addresses = Object.values(networkInterfaces()).flatMap((it) => it ?? [])
  if (addresses.some((it) => it.address === '::1')) return false
  return 'needs the address ::1: sysctl net.ipv6.conf.lo.disable_ipv6=0'
}

function isInstalled(program: Program): boolean {
  return (process.env['PATH'] ?? '').split(':').some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}
