import { MiB } from '../../base/limits.ts'
import type { Log, LogFields } from '../../world/log.ts'
import { LineWriter } from './line-writer.ts'
import { renderError } from './render-error.ts'

export interface SystemLogOptions {
  /** The least that is logged. */
  readonly level: LogLevel
  /** Where to: 1 is stdout, 2 is stderr. Stays open after close(). */
  readonly descriptor: number
  /** What may wait for a slow reader; lines beyond it are dropped and counted. */
  readonly waitingCharsMax?: number
}

export const LOG_LEVELS = ['info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

/**
 * The operator's log: one JSON object a line, in the order level, time, event, then the fields as
 * they were given, an error last.
 */
export class SystemLog implements Log {
  readonly #writer: LineWriter
  readonly #least: number
  #second = 0
  #secondText = ''

  constructor(options: SystemLogOptions) {
    this.#writer = new LineWriter(
      options.descriptor,
      options.waitingCharsMax ?? WAITING_CHARS_MAX,
      (lines) => this.warn('log lines dropped', { lines }),
    )
    this.#least = LOG_LEVELS.indexOf(options.level)
  }

  info(event: string, fields?: LogFields): void {
    this.#write('info', event, fields)
  }

  warn(event: string, fields?: LogFields, error?: Error): void {
    const shown = error === undefined ? fields : { ...fields, error: renderError(error) }
    this.#write('warn', event, shown)
  }

  error(event: string, error: unknown, fields?: LogFields): void {
    this.#write('error', event, { ...fields, error: renderError(error) })
  }

  /** Resolves when every line logged so far is written, or cannot be. */
  close(): Promise<void> {
    return this.#writer.close()
  }

  #write(level: LogLevel, event: string, fields: LogFields | undefined): void {
    if (LOG_LEVELS.indexOf(level) < this.#least) return
    const now = Date.now()
    this.#writer.write(() => {
      const head = `{"level":"${level}","time":"${this.#time(now)}","event":${JSON.stringify(event)}`
      const rest = JSON.stringify(fields ?? {}).slice(1)
      return rest === '}' ? `${head}}\n` : `${head},${rest}\n`
    })
  }

  /** ISO 8601 in UTC; all but the milliseconds is rendered once a second. */
  #time(now: number): string {
    const second = Math.floor(now / 1000)
    if (second !== this.#second) {
      this.#second = second
      this.#secondText = new Date(second * 1000).toISOString().slice(0, -4)
    }
    return `${this.#secondText}${String(now % 1000).padStart(3, '0')}Z`
  }
}

const WAITING_CHARS_MAX = 16 * MiB
