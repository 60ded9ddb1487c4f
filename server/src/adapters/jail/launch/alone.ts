import { existsSync, mkdirSync } from 'node:fs'
import { hostname, networkInterfaces } from 'node:os'
import { GUEST_HOST } from './launch-plan.ts'

/** Throws, and lists what is still shared, unless this process has namespaces of its own. */
export function assertAlone(): void {
  const shared: string[] = []
  if (process.pid !== 1 || process.ppid !== 0 || existsSync('/proc/1')) shared.push('processes')
  if (Object.values(networkInterfaces()).some((it) => it?.some(({ internal }) => !internal))) {
    shared.push('a network')
  }
  if (OF_EVERY_MACHINE.some((it) => existsSync(it)) || canWriteTo('/')) shared.push('files')
  if (hostname() !== GUEST_HOST) shared.push('the name of the machine')
  if (shared.length > 0) throw new Error(`namespaces: shared are ${shared.join(', ')}`)
}

const OF_EVERY_MACHINE = ['/etc/passwd', '/sys/kernel', '/dev/pts']

function canWriteTo(folder: string): boolean {
  try {
    mkdirSync(`${folder}/symbolon-written`)
    return true
  } catch {
    return false
  }
}
