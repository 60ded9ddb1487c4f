import type { FieldsProblem } from '../protocol/messages.ts'

/**
 * Any failure of the fields, in the format of the service's errors. docs/browser.md says what to do for each `code`.
 *
 * A status of 0 means that the vault did not answer or was not called.
 */
export class FieldsError extends Error {
  override readonly name = 'FieldsError'
  readonly title: string
  readonly status: number
  readonly detail: string
  readonly code: string | undefined
  readonly errors: Readonly<Record<string, readonly string[]>>
  /** Seconds to wait before trying again, if the vault said so. */
  readonly retryAfter: number | undefined

  constructor({ title, status, detail, code, errors = {}, retryAfter }: FieldsProblem) {
    super(detail)
    this.title = title
    this.status = status
    this.detail = detail
    this.code = code
    this.errors = errors
    this.retryAfter = retryAfter
  }
}

/** Returns an error from the page's side: the fields are used wrongly or cannot be mounted. */
export function misuse(code: string, detail: string): FieldsError {
  return new FieldsError({ title: 'Bad Request', status: 0, code, detail })
}
