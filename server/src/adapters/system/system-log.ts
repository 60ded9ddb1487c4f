import {
  LOG_LEVELS,
  type Log,
  type LogFields,
  type LogValue,
  type LogLevel,
} from '../../ports/log.ts'
import { LineWriter, type LineWriterOptions } from './line-writer.ts'
import { renderError } from './render-error.ts'

export interface SystemLogOptions extends LineWriterOptions {
  /** The lowest level that is logged. */
  readonly level: LogLevel
  /** The target: 1 is stdout, 2 is stderr. Stays open after close(). */
  readonly descriptor: number
}

/**
 * The operator's log: one JSON object per line, with level, time and event first, then the fields
 * in the order given, and an error last.
 */
export class SystemLog implements Log {
  readonly #writer: LineWriter
  readonly #least: number
  #second = 0
  #secondText = ''

  constructor(options: SystemLogOptions) {
    this.#writer = new LineWriter(options.descriptor, options, (lines) =>
      this.warn('log lines dropped', { lines }),
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
    }, charsOf(fields))
  }

  /** Formats as ISO 8601 in UTC; everything but the milliseconds is rendered once per second. */
  #time(now: number): string {
    const second = Math.floor(now / 1000)
    if (second !== this.#second) {
      this.#second = second
      this.#secondText = new Date(second * 1000).toISOString().slice(0, -4)
    }
    return `${this.#secondText}${String(now % 1000).padStart(3, '0')}Z`
  }
}

/** Estimates the number of characters in the rendered value. */
function charsOf(value: LogValue): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return SHORT_CHARS
  let chars = SHORT_CHARS
  if (isList(value)) for (const it of value) chars += charsOf(it)
  else for (const name in value) chars += SHORT_CHARS + charsOf(value[name])
  return chars
}

function isList(value: LogFields | readonly LogValue[]): value is readonly LogValue[] {
  return Array.isArray(value)
}

/** The size of a number, or of a name and the characters around it. */
const SHORT_CHARS = 10
