/** What is in a backup, before it is encrypted: a line of JSON about it, and then the database as a file. */
import type { RootKeyCheck } from '../ports/stored.ts'

export interface BackupHeader {
  /** When it was begun: whatever was acknowledged before is in it. */
  readonly madeAt: number
  /** Of the program that made it. */
  readonly version: string
  readonly rootKey: RootKeyCheck
  readonly tenants: number
}

export function writeBackupHeader({ madeAt, version, rootKey, tenants }: BackupHeader): Uint8Array {
  const header = {
    backup: 1,
    madeAt: new Date(madeAt).toISOString(),
    version,
    rootKey: rootKey.id,
    rootKeyCheck: Buffer.from(rootKey.check).toString('base64'),
    tenants,
  }
  return Buffer.from(`${JSON.stringify(header)}\n`)
}

/** Parts the header from what follows; throws where there is none. `bytes` is some kilobytes at least, or all. */
export function readBackupHeader(bytes: Uint8Array): { header: BackupHeader; rest: Uint8Array } {
  const end = bytes.indexOf(NEWLINE)
  const text = Buffer.from(bytes.subarray(0, Math.max(0, end))).toString()
  if (!text.startsWith('{"backup":1,')) {
    throw new Error('Cannot restore: what is in the file is no backup that this program knows')
  }
  const header = JSON.parse(text) as Record<string, string | number>
  return {
    header: {
      madeAt: Date.parse(String(header['madeAt'])),
      version: String(header['version']),
      rootKey: {
        id: String(header['rootKey']),
        check: Buffer.from(String(header['rootKeyCheck']), 'base64'),
      },
      tenants: Number(header['tenants']),
    },
    rest: bytes.subarray(end + 1),
  }
}

const NEWLINE = 0x0a
