/**
 * Error classes that reactor code throws to respond with a status, from the package of reactor errors.
 *
 * Recognized by `name`, `status` and `errors`, never by class, because the host sees JSON. Sources: interface.md,
 * errors raised by reactor code; texts that would name a vendor's address are our own.
 */
const FALLBACK = 'Something went wrong while running the reactor.'

type ErrorTexts = Record<string, string[]>

interface Details {
  readonly message?: string
  readonly status?: number
  readonly errors?: unknown
}

export class BasisTheoryReactorError extends Error {
  override name = 'BasisTheoryReactorError'
  status: number
  errors: ErrorTexts

  constructor({ message = 'Reactor Runtime Error', status = 500, errors }: Details = {}) {
    super(message)
    this.status = status
    this.errors = errorTexts(errors)
  }

  toRFC7807(): { detail: string; status: number; errors: ErrorTexts } {
    return { detail: this.message, status: this.status, errors: this.errors }
  }
}

export class BadRequestError extends BasisTheoryReactorError {
  override name = 'BadRequestError'
  constructor(errors?: unknown) {
    super({ message: 'Bad Request', status: 400, errors })
  }
}

export class InvalidReactorConfigurationError extends BasisTheoryReactorError {
  override name = 'InvalidReactorConfigurationError'
  constructor(errors?: unknown) {
    super({ message: 'Invalid Reactor Configuration', status: 400, errors })
  }
}

export class AuthenticationError extends BasisTheoryReactorError {
  override name = 'AuthenticationError'
  constructor(errors?: unknown) {
    super({ message: 'Authentication Failed', status: 401, errors })
  }
}

export class InvalidPaymentMethodError extends BasisTheoryReactorError {
  override name = 'InvalidPaymentMethodError'
  constructor(errors?: unknown) {
    super({ message: 'Invalid Payment Method', status: 402, errors })
  }
}

export class AuthorizationError extends BasisTheoryReactorError {
  override name = 'AuthorizationError'
  constructor(errors?: unknown) {
    super({ message: 'Forbidden', status: 403, errors })
  }
}

export class RateLimitError extends BasisTheoryReactorError {
  override name = 'RateLimitError'
  constructor(errors?: unknown) {
    super({ message: 'Rate Limit Exceeded', status: 429, errors })
  }
}

export class ReactorRuntimeError extends BasisTheoryReactorError {
  override name = 'ReactorRuntimeError'
  constructor(errors?: unknown) {
    super({ message: 'Reactor Runtime Error', status: 500, errors })
  }
}

export class ServiceUnavailableError extends BasisTheoryReactorError {
  override name = 'ServiceUnavailableError'
  constructor(errors?: unknown) {
    super({ message: 'Service Unavailable', status: 503, errors })
  }
}

/** Its status, headers and body become the response. */
export class CustomHttpResponseError extends Error {
  override name = 'CustomHttpResponseError'
  status: number
  headers: object
  body: unknown

  constructor(response: { status?: unknown; headers?: object; body?: unknown } = {}) {
    super('Custom HTTP response')
    const { status, headers = {}, body = {} } = response
    if (!Number.isInteger(status) || Number(status) < 100 || Number(status) > 599) {
      throw new Error('status is not a valid integer')
    }
    this.status = Number(status)
    this.headers = headers
    this.body = body
  }
}

/** Converts any `errors` value into lists of texts by name. */
function errorTexts(errors: unknown): ErrorTexts {
  if (typeof errors === 'string' && errors !== '') return { error: [errors] }
  if (Array.isArray(errors)) return { error: errors.map(textOf) }
  if (errors instanceof Error) {
    const { message, name } = errors
    return { error: [message || (name !== 'Error' && name) || FALLBACK] }
  }
  if (typeof errors !== 'object' || errors === null) return { error: [FALLBACK] }
  return Object.fromEntries(
    Object.entries(errors).map(([key, value]: [string, unknown]) => {
      if (Array.isArray(value)) return [key, value.map(textOf)]
      return [key, [value ? textOf(value) : FALLBACK]]
    }),
  )
}

function textOf(value: unknown): string {
  return typeof value === 'object' && value !== null ? jsonText(value) : String(value)
}

/** Returns JSON in which circular references read `[Circular]`. */
function jsonText(value: object): string {
  const above: unknown[] = []
  return JSON.stringify(value, function (this: unknown, _key, member: unknown) {
    if (typeof member !== 'object' || member === null) return member
    while (above.length > 0 && above.at(-1) !== this) above.pop()
    if (above.includes(member)) return '[Circular]'
    above.push(member)
    return member
  })
}
