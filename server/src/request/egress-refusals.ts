/**
 * Refusals for requests that cannot be sent, or that get no usable response.
 *
 * Source: interface.md, Proxy, errors.
 */
import { ServiceError, type RefusalCode } from '../base/service-error.ts'
import {
  EgressFailure,
  EgressRefusal,
  type EgressFault,
  type EgressHint,
  type EgressRule,
} from '../ports/egress.ts'

const RULES: Readonly<Record<EgressRule, string>> = {
  scheme: 'It must be https, unless the operator allows it.',
  credentials: 'It must hold neither a user nor a password.',
  host: 'It must have a host, and one that can be a name.',
  literal: 'Its host must be a name and not an address, unless the operator allows it.',
  port: 'Its port is not one that anything is sent to.',
  address: 'Its host leads to an address that is not public, and that the operator does not allow.',
  unlisted: 'It is not among the destinations that the application and the tenant both allow.',
}

const FAULTS: Readonly<Record<EgressFault, RefusalCode>> = {
  unresolved: 'destination_unresolved',
  unreachable: 'destination_unreachable',
  tls: 'destination_untrusted',
  reset: 'destination_reset',
  'answer-invalid': 'destination_answer_invalid',
  timeout: 'destination_timeout',
  // Aborted by us or by the client, so there is rarely a recipient.
  aborted: 'destination_reset',
  request: 'destination_reset',
}

const HINTS: Readonly<Record<EgressHint, string>> = {
  'no-tls':
    'Its port answered without TLS. If it is for plain http, the URL must begin with http://, and the operator must allow it.',
  tls: 'Its port expects TLS: the URL must begin with https://.',
  'perhaps-tls': 'If its port expects TLS, the URL must begin with https://.',
}

/**
 * Returns the refusal that callers get for an egress error; other errors unchanged. `hinted` is false for callers who neither
 * chose the destination nor may know about it.
 */
export function refusalOfEgress(error: unknown, { hinted } = { hinted: true }): unknown {
  if (error instanceof EgressRefusal) {
    const errors = { destination: [RULES[error.rule]], rule: [error.rule] }
    return new ServiceError('destination_refused', errors, { cause: error })
  }
  if (error instanceof EgressFailure) {
    const errors = error.hint === null || !hinted ? undefined : { destination: [HINTS[error.hint]] }
    return new ServiceError(FAULTS[error.fault], errors, { cause: error })
  }
  return error
}
