/** Errors of the iframe itself, in the service's format. */
import type { FieldsProblem } from '../protocol/messages.ts'
import { CallError } from './frame-client.ts'

/** Returns the problem for a page's request that cannot be done. Its status is 0: the vault was not called. */
export function refusal(
  code: string,
  detail: string,
  errors?: FieldsProblem['errors'],
): FieldsProblem {
  return { title: 'Bad Request', status: 0, code, detail, ...(errors !== undefined && { errors }) }
}

/** Returns what the page may know of `error`. An error thrown by our own code might quote a value, so its text is dropped. */
export function problemOf(error: unknown): FieldsProblem {
  if (error instanceof CallError) return error.problem
  return { title: 'Fault', status: 0, code: 'fault', detail: 'The card fields failed.' }
}
