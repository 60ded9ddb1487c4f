/**
 * Where the operator reads what happened: one structured line an event.
 *
 * Fields are named one by one by whoever logs; no body, key or token data ever goes in, and never a
 * whole object from outside. They may be read a while after, so nobody changes them any more.
 */
export interface Log {
  info(event: string, fields?: LogFields): void
  /** For what needs a look and is no fault of this service: `error`, if there is one, is another's. */
  warn(event: string, fields?: LogFields, error?: Error): void
  /** `error` is shown, here as above, with its stack and causes; it must not carry data. */
  error(event: string, error: unknown, fields?: LogFields): void
}

export interface LogFields {
  readonly [name: string]: LogValue
}

export type LogValue =
  undefined | null | boolean | number | string | readonly LogValue[] | LogFields

/** From the least to the most important. */
export const LOG_LEVELS = ['info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]
