import type { Log, LogFields } from '../../src/ports/log.ts'

export interface RememberedLine {
  readonly level: 'info' | 'warn' | 'error'
  readonly event: string
  readonly fields: LogFields
  /** What was thrown, as it was thrown; absent where nothing was. */
  readonly error?: unknown
}

/** A log that keeps its lines, for tests to read what the operator would. */
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
