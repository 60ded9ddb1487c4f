/**
 * Turns an error thrown by code into a failure: by its name and members, because its class belongs to another realm.
 *
 * The code is untrusted, so every member may be anything. Source: interface.md, Reactors, errors of the code.
 */
import { isJsonObject, type Json } from '../../base/json.ts'
import {
  REACTOR_ERRORS_MAX,
  REACTOR_ERROR_NAME_CHARS_MAX,
  REACTOR_MESSAGE_CHARS_MAX,
} from '../../base/limits.ts'
import type { ThrownError } from '../../ports/reactor-runner.ts'
import { DETAIL_OF_ERROR } from './wire.ts'

export interface Failure {
  readonly status: number
  readonly detail: string
  readonly errors: Readonly<Record<string, readonly string[]>>
}

/** Returns the failure of an error that is not a custom response; nothing is redacted yet. */
export function failureOf(error: ThrownError): Failure {
  const name = typeof error.name === 'string' ? error.name : ''
  const known = CLASSES.get(name)
  if (known !== undefined) {
    const [status, detail] = known
    return { status, detail, errors: errorsOf(error) }
  }
  const { status, message } = error
  if (isErrorStatus(status) && (name === BASE || error.errors !== null)) {
    const detail = typeof message === 'string' && message !== '' ? trimmed(message) : FALLBACK
    return { status, detail, errors: errorsOf(error) }
  }
  return runtimeError(messageOf(error))
}

export function runtimeError(message: string): Failure {
  return { status: 500, detail: DETAIL_OF_ERROR, errors: { error: [message] } }
}

/** Returns the message without its stack trace, cut to the length shown. */
export function trimmed(message: string): string {
  const [head = ''] = message.split(/\r?\n(?:\s+at |Require stack:)/, 1)
  return head.length > REACTOR_MESSAGE_CHARS_MAX ? TOO_LONG : head
}

function errorsOf(error: ThrownError): Failure['errors'] {
  const { errors } = error
  if (typeof errors === 'string' && errors !== '') return { error: [trimmed(errors)] }
  if (Array.isArray(errors)) return { error: textsOf(errors) }
  if (!isJsonObject(errors) || Object.keys(errors).length === 0) {
    return { error: [messageOf(error)] }
  }
  const entries = Object.entries(errors).slice(0, REACTOR_ERRORS_MAX)
  return Object.fromEntries(
    entries.map(([name, it]) => {
      const texts = Array.isArray(it) ? textsOf(it) : [textOf(it)]
      return [name.length > REACTOR_ERROR_NAME_CHARS_MAX ? LONG_NAME : name, texts]
    }),
  )
}

function messageOf({ name, message }: ThrownError): string {
  if (typeof message === 'string' && message !== '') return trimmed(message)
  return typeof name === 'string' && name !== '' && name !== 'Error' ? trimmed(name) : FALLBACK
}

function textsOf(items: readonly Json[]): string[] {
  return items.slice(0, REACTOR_ERRORS_MAX).map(textOf)
}

function textOf(value: Json): string {
  if (typeof value === 'string' && value !== '') return trimmed(value)
  return value ? trimmed(JSON.stringify(value)) : FALLBACK
}

function isErrorStatus(status: Json): status is number {
  return Number.isInteger(status) && Number(status) >= 400 && Number(status) <= 599
}

const CLASSES: ReadonlyMap<string, readonly [status: number, detail: string]> = new Map([
  ['BadRequestError', [400, 'Bad Request']],
  ['InvalidReactorConfigurationError', [400, 'Invalid Reactor Configuration']],
  ['AuthenticationError', [401, 'Authentication Failed']],
  ['InvalidPaymentMethodError', [402, 'Invalid Payment Method']],
  ['AuthorizationError', [403, 'Forbidden']],
  ['InvalidReactorFormulaError', [422, 'Invalid Reactor Formula']],
  ['RateLimitError', [429, 'Rate Limit Exceeded']],
  ['ReactorRuntimeError', [500, DETAIL_OF_ERROR]],
  ['ServiceUnavailableError', [503, 'Service Unavailable']],
] as const)

/** The base class of these errors, with its own status and message. */
const BASE = 'BasisTheoryReactorError'

const FALLBACK = 'Something went wrong while running the reactor.'
const TOO_LONG = 'The message is too long to be shown.'
const LONG_NAME = 'error'
