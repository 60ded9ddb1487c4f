import { isJsonObject, type Json } from '../../base/json.ts'
import { accountNumberFault, routingNumberFault } from './checks.ts'
import { DataInvalid, type TokenType } from './token-type.ts'

/** A US bank account. Source: interface.md, Token types, `bank`. */
export const bank: TokenType = {
  name: 'bank',
  container: '/bank/high/',
  parse: parseBank,
  fingerprintExpression: '{{ data.account_number }}|{{ data.routing_number }}',
  fingerprintExpressionShown: true,
  mask: {
    routing_number: '{{ data.routing_number }}',
    account_number: '{{ data.account_number | reveal_last: 4 }}',
  },
  searchIndexes: [],
  shortLived: null,
  privacy: { classification: 'bank', impactLevel: 'high' },
}

function parseBank(data: Json): Json {
  if (!isJsonObject(data)) throw new DataInvalid({ '': 'The bank account must be an object.' })
  const faults: Record<string, string> = {}
  const routing = routingNumberFault(data['routing_number'])
  if (routing !== null) faults['routing_number'] = routing
  const account = accountNumberFault(data['account_number'], 1)
  if (account !== null) faults['account_number'] = account
  if (Object.keys(faults).length > 0) throw new DataInvalid(faults)
  return data
}
