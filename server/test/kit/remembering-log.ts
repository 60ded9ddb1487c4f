import type { Log, LogFields } from '../../src/ports/log.ts'

export interface RememberedLine {
  readonly level: 'info' | 'warn' | 'error'
  readonly event: string
  readonly fields: LogFields
  /** The logged error, as thrown; absent if there was none. */
  readonly error?: unknown
}

/** A log that keeps its lines, so that tests can read them. */
export class RememberingLog implements Log {
  readonly lines: RememberedLine[] = []

  info(event: string, fields: LogFields = {}): void {
    this.lines.push({ level: 'info', event, fields })
  }

  warn(event: string, fields: LogFields = {}, error?: Error): void {
    this.lines.push({ level: 'warn', event, fields, ...(error !== undefined && { error }) })
  }

  error(event: string, error: unknown, fields: LogFields = {}): void {
    this.lines.push({ level: 'error', event, fields, error })
  }
}
