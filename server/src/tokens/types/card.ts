/**
 * A payment card.
 *
 * Clients send month and year as numeric strings and the security code as a number, too; all are normalized. A past
 * expiration date is accepted: cards are also stored after they expire. Members not named here are kept unchanged.
 * Source: interface.md, Token types, `card`.
 */
import { isJsonObject, type Json, type JsonObject } from '../../base/json.ts'
import { cardNumberFault } from './checks.ts'
import { DataInvalid, type TokenType } from './token-type.ts'

export const card: TokenType = {
  name: 'card',
  container: '/pci/high/',
  parse: parseCard,
  fingerprintExpression: '{{ data.number }}',
  fingerprintExpressionShown: true,
  mask: {
    number: '{{ data.number | reveal_last: 4 }}',
    expiration_month: '{{ data.expiration_month }}',
    expiration_year: '{{ data.expiration_year }}',
  },
  searchIndexes: [],
  shortLived: 'cvc',
  privacy: { classification: 'pci', impactLevel: 'high' },
}

function parseCard(data: Json): Json {
  if (!isJsonObject(data)) throw new DataInvalid({ '': 'The card must be an object.' })
  const kept: JsonObject = { ...data }
  const faults: Record<string, string> = {}

  const numberFault = cardNumberFault(data['number'])
  if (numberFault !== null) faults['number'] = numberFault

  const month = parseWhole(data['expiration_month'], /^\d\d?$/)
  if (month === undefined) delete kept['expiration_month']
  else if (month >= 1 && month <= 12) kept['expiration_month'] = month
  else faults['expiration_month'] = 'The month must be a whole number from 1 to 12.'

  const year = parseWhole(data['expiration_year'], /^\d{4}$/)
  if (year === undefined) delete kept['expiration_year']
  else if (year >= 1000 && year <= 9999) kept['expiration_year'] = year
  else faults['expiration_year'] = 'The year must be a whole number of four digits.'

  const cvc = typeof data['cvc'] === 'number' ? String(data['cvc']) : data['cvc']
  if (cvc === undefined || cvc === null) delete kept['cvc']
  else if (typeof cvc === 'string' && /^\d{3,4}$/.test(cvc)) kept['cvc'] = cvc
  else faults['cvc'] = 'The security code must be 3 or 4 digits.'

  if (Object.keys(faults).length > 0) throw new DataInvalid(faults)
  return kept
}

/** Returns undefined if absent, NaN if neither a whole number nor a text of the given form. */
function parseWhole(value: Json | undefined, form: RegExp): number | undefined {
  if (value === undefined || value === null) return undefined
  if (typeof value === 'string' && form.test(value)) return Number(value)
  return typeof value === 'number' && Number.isInteger(value) ? value : NaN
}
