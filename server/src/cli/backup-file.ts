/** The content of a backup before encryption: a header, as one line of JSON, followed by the database file. */
import type { RootKeyCheck } from '../ports/stored.ts'

export interface BackupHeader {
  /** When the backup began: everything acknowledged before is in it. */
  readonly madeAt: number
  /** Version of the program that made the backup. */
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

/** Splits the header from the rest; throws if there is none. `bytes` is at least a few kilobytes, or everything. */
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
