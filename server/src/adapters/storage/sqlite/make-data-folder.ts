import { existsSync, mkdirSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { diskFaultOf } from '../../../base/disk-fault.ts'

/**
 * Creates `folder` and its missing parents, private to the owner, unless it exists. Throws the
 * cause of a failure.
 *
 * Creates them one by one: inside an existing folder that accepts no subfolder, such as `/proc`,
 * Node's `recursive` option loops forever.
 */
export function makeDataFolder(folder: string): void {
  try {
    for (const it of missingOf(resolve(folder))) make(it)
    if (statSync(folder).isDirectory()) return
  } catch (cause) {
    throw new Error(`Cannot make the data folder ${folder}: ${reasonOf(cause)}`, { cause })
  }
  throw new Error(`Cannot use ${folder} as the data folder: it is a file`)
}

/** Returns the missing folders, outermost first. */
function missingOf(folder: string): string[] {
  const missing: string[] = []
  for (let at = folder; !existsSync(at); at = dirname(at)) missing.unshift(at)
  return missing
}

function make(folder: string): void {
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    // Another process created it first.
    if (codeOf(error) !== 'EEXIST' || !existsSync(folder)) throw error
  }
}

function reasonOf(error: unknown): string {
  const code = codeOf(error)
  return REASONS[code] ?? diskFaultOf(error) ?? `it fails with ${code}`
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'an unknown error'
}

const REASONS: Readonly<Record<string, string>> = {
  EEXIST: 'something that is no folder has its name',
  ENOTDIR: 'a file has the name of a folder that it is to lie in',
  ENOENT: 'no folder can be made there',
}
