import { pino, type Level } from 'pino'
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
  readonly #lines: pino.Logger

  constructor(options: SystemLogOptions) {
    this.#writer = new LineWriter(
      options.descriptor,
      options.waitingCharsMax ?? WAITING_CHARS_MAX,
      (lines) => this.warn('log lines dropped', { lines }),
    )
    this.#lines = pino(
      {
        level: options.level,
        base: null,
        timestamp: pino.stdTimeFunctions.isoTime,
        formatters: { level: (label) => ({ level: label }) },
        // By this name pino shows everything an error carries; ours are rendered before.
        serializers: { err: (value: unknown) => value },
      },
      this.#writer,
    )
  }

  info(event: string, fields?: LogFields): void {
    this.#write('info', event, fields)
  }

  warn(event: string, fields?: LogFields): void {
    this.#write('warn', event, fields)
  }

  error(event: string, error: unknown, fields?: LogFields): void {
    this.#write('error', event, { ...fields, error: renderError(error) })
  }

  /** Resolves when every line logged so far is written, or cannot be. */
  close(): Promise<void> {
    return this.#writer.close()
  }

  #write(level: Level, event: string, fields: LogFields | undefined): void {
    this.#lines[level]({ event, ...fields })
  }
}

const WAITING_CHARS_MAX = 16 * MiB
