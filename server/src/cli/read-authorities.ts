import { readFileSync, statSync } from 'node:fs'
import { parseCertificates } from '../adapters/egress/trust.ts'
import { SettingError, SETTINGS } from '../config.ts'

/** Returns the certificates in `file`, each as PEM; none without a file. Throws ConfigError if the file holds none. */
export function readAuthorities(file: string | null): string[] {
  if (file === null) return []
  try {
    // A pipe or a device may never end: the start would block on it, and ignore signals.
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
