/** A check of `symbolon doctor`: one property of the installation that an operator can change. */
import type { Config } from '../../config.ts'
import type { DoctorContext } from './context.ts'

export const CHECK_GROUPS = [
  'settings',
  'machine',
  'data folder',
  'keys',
  'database',
  'service',
  'network',
  'reactors',
  'work',
  'audit log',
] as const
export type CheckGroup = (typeof CHECK_GROUPS)[number]

export type CheckStatus = 'failed' | 'warning' | 'skipped' | 'ok'

export interface Finding {
  readonly status: CheckStatus
  /** One sentence, with the figures; never a secret. */
  readonly message: string
  /** The command to run or the setting to change; null if nothing needs to be done. */
  readonly remedy: string | null
}

export interface Check {
  /** In kebab-case, unique, and stable: monitoring selects by it. */
  readonly name: string
  readonly group: CheckGroup
  /** Whether it has a meaning with these settings; otherwise it is left out. */
  readonly applies?: (config: Config) => boolean
  /** Milliseconds, if CHECK_MS_MAX does not fit. */
  readonly timeoutMs?: number
  /** Throws CheckSkipped if an earlier failure leaves nothing to check. Changes nothing. */
  readonly run: (context: DoctorContext) => Promise<Finding>
}

/** A check that cannot run because of something that another check reports. Its message is the reason. */
export class CheckSkipped extends Error {
  override readonly name = 'CheckSkipped'
}

export function ok(message: string): Finding {
  return { status: 'ok', message, remedy: null }
}

export function warning(message: string, remedy: string): Finding {
  return { status: 'warning', message, remedy }
}

export function failed(message: string, remedy: string): Finding {
  return { status: 'failed', message, remedy }
}

export const usesSqlite = ({ databaseUrl }: Config): boolean => databaseUrl === null
export const usesPostgres = ({ databaseUrl }: Config): boolean => databaseUrl !== null

/** Returns paths as words of a shell command. */
export function words(...paths: readonly string[]): string {
  return paths
    .map((it) => (/^[\w@%+=:,./-]+$/.test(it) ? it : `'${it.replaceAll("'", String.raw`'\''`)}'`))
    .join(' ')
}
