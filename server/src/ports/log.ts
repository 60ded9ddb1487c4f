/**
 * The operator's log: one structured line per event.
 *
 * The code that logs names each field; no body, key or token data is ever included, and never a whole object from outside. Fields
 * may be read later, so they must not be changed after the call.
 */
export interface Log {
  info(event: string, fields?: LogFields): void
  /** For events that need attention and are no fault of this service: `error`, if there is one, is another system's. */
  warn(event: string, fields?: LogFields, error?: Error): void
  /** `error` is logged, here as above, with its stack and causes; it must not carry data. */
  error(event: string, error: unknown, fields?: LogFields): void
}

export interface LogFields {
  readonly [name: string]: LogValue
}

export type LogValue =
  | undefined
  | null
  | boolean
  | number
  | string
  | readonly LogValue[]
  | LogFields

/** From the least to the most important. */
export const LOG_LEVELS = ['info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]
