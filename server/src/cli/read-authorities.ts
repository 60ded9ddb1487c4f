import { readFileSync, statSync } from 'node:fs'
import { parseCertificates } from '../adapters/egress/trust.ts'
import { SettingError, SETTINGS } from '../config.ts'

/** Returns the certificates in `file`, as PEM each; none without a file. Throws ConfigError for what has none. */
export function readAuthorities(file: string | null): string[] {
  if (file === null) return []
  try {
    // Of a pipe or a device there may be no end: the start would wait for it, and hear no signal.
    if (!statSync(file).isFile()) throw new Error('it is no regular file')
    const found = parseCertificates(readFileSync(file, 'utf8'))
    if (found.length === 0) throw new Error('there is none in it')
    return found
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    const reason = code === undefined ? (error as Error).message : `it cannot be read (${code})`
    throw new SettingError(
      SETTINGS.extraCaFile.variable,
      `is '${file}', but must be a PEM file of certificates: ${reason}.`,
    )
  }
}
