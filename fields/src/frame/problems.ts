/** Errors of the iframe itself, in the service's format. */
import type { FieldsProblem } from '../protocol/messages.ts'
import { CallError } from './frame-client.ts'

/** What the page asked for cannot be done. A status of 0: the vault was not asked. */
export function refusal(
  code: string,
  detail: string,
  errors?: FieldsProblem['errors'],
): FieldsProblem {
  return { title: 'Bad Request', status: 0, code, detail, ...(errors !== undefined && { errors }) }
}

/** Returns what the page is told of `error`. An error of our own code might quote a value, so nothing is told of it. */
export function problemOf(error: unknown): FieldsProblem {
  if (error instanceof CallError) return error.problem
  return { title: 'Fault', status: 0, code: 'fault', detail: 'The card fields failed.' }
}
