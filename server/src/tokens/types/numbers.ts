/**
 * Token types whose data is one number, written as a string.
 *
 * They share a file because little but their check differs. Source: interface.md, Token types.
 */
import type { Json } from '../../base/json.ts'
import { accountNumberFault, cardNumberFault, routingNumberFault } from './checks.ts'
import { DataInvalid, type TokenType } from './token-type.ts'

const LAST_FOUR = '{{ data | reveal_last: 4 }}'

export const cardNumber: TokenType = {
  name: 'card_number',
  container: '/pci/high/',
  parse: parseBy(cardNumberFault),
  fingerprintExpression: '{{ data }}',
  fingerprintExpressionShown: true,
  mask: LAST_FOUR,
  searchIndexes: [],
  shortLived: null,
  privacy: { classification: 'pci', impactLevel: 'high' },
}

export const usBankAccountNumber: TokenType = {
  name: 'us_bank_account_number',
  container: '/bank/high/',
  parse: parseBy((data) => accountNumberFault(data, 3)),
  fingerprintExpression: '{{ data }}',
  fingerprintExpressionShown: true,
  mask: LAST_FOUR,
  searchIndexes: [],
  shortLived: null,
  privacy: { classification: 'bank', impactLevel: 'high' },
}

export const usBankRoutingNumber: TokenType = {
  name: 'us_bank_routing_number',
  container: '/bank/low/',
  parse: parseBy(routingNumberFault),
  fingerprintExpression: '{{ data }}',
  fingerprintExpressionShown: true,
  mask: LAST_FOUR,
  searchIndexes: [],
  shortLived: null,
  privacy: { classification: 'bank', impactLevel: 'low' },
}

/** Written `123-45-6789` or without dashes; searches find both forms. */
export const socialSecurityNumber: TokenType = {
  name: 'social_security_number',
  ...identityNumber(/^(?:\d{9}|\d{3}-\d{2}-\d{4})$/, 'The social security number'),
}

/** Written `12-3456789` or without the dash; searches find both forms. */
export const employerIdNumber: TokenType = {
  name: 'employer_id_number',
  ...identityNumber(/^(?:\d{9}|\d{2}-\d{7})$/, 'The employer id number'),
}

function identityNumber(form: RegExp, subject: string): Omit<TokenType, 'name'> {
  return {
    container: '/pii/high/',
    parse: parseBy((data) =>
      typeof data === 'string' && form.test(data)
        ? null
        : `${subject} must be a string of 9 digits, with or without its dashes.`,
    ),
    fingerprintExpression: "{{ data | remove: '-' }}",
    fingerprintExpressionShown: true,
    mask: LAST_FOUR,
    searchIndexes: ['{{ data }}', "{{ data | replace: '-' }}", '{{ data | last4 }}'],
    shortLived: null,
    privacy: { classification: 'pii', impactLevel: 'high' },
  }
}

function parseBy(faultOf: (data: Json) => string | null): TokenType['parse'] {
  return (data) => {
    const fault = faultOf(data)
    if (fault !== null) throw new DataInvalid({ '': fault })
    return data
  }
}
