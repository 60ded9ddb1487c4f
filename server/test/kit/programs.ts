import { accessSync, constants } from 'node:fs'
import path from 'node:path'

/** Programs that tests need and a machine may lack, with the Debian packages they come in. `.ci/run` installs them all. */
const PACKAGES = {
  bwrap: 'bubblewrap',
  ip: 'iproute2',
  setpriv: 'util-linux',
  unshare: 'util-linux',
} as const

/**
 * Says which of `programs` is missing and how to install it, or false if all are there. For the option `skip` of tests:
 * a missing program is the only reason to skip one.
 */
export function missing(...programs: readonly Program[]): string | false {
  const absent = programs.find((it) => !isInstalled(it))
  return absent === undefined ? false : notInstalled(absent)
}

export function notInstalled(program: Program): string {
  return `${program} is not installed: apt-get install ${PACKAGES[program]}`
}

type Program = keyof typeof PACKAGES

function isInstalled(program: string): boolean {
  const folders = [...(process.env['PATH'] ?? '').split(path.delimiter), '/usr/sbin', '/sbin']
  return folders.some((it) => isExecutable(path.join(it, program)))
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}
