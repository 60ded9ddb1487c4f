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
  /** One sentence with the figures, and without secrets. */
  readonly message: string
  /** The command to run or the setting to change; null if nothing needs to be done. */
  readonly remedy: string | null
}

export interface Check {
  /** In kebab-case, unique and stable: monitoring selects checks by name. */
  readonly name: string
  readonly group: CheckGroup
  /** Whether the check makes sense with these settings; if not, it is left out. */
  readonly applies?: (config: Config) => boolean
  /** In milliseconds; CHECK_MS_MAX by default. */
  readonly timeoutMs?: number
  /** Throws CheckSkipped if an earlier failure leaves nothing to check. Changes nothing. */
  readonly run: (context: DoctorContext) => Promise<Finding>
}

/** Thrown if a check cannot run because of a problem that another check reports. Its message is the reason. */
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

/** Quotes paths for a shell command. */
export function words(...paths: readonly string[]): string {
  return paths
    .map((it) => (/^[\w@%+=:,./-]+$/.test(it) ? it : `'${it.replaceAll("'", String.raw`'\''`)}'`))
    .join(' ')
}
