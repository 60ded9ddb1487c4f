import { bank } from './bank.ts'
import { card } from './card.ts'
import {
  cardNumber,
  employerIdNumber,
  socialSecurityNumber,
  usBankAccountNumber,
  usBankRoutingNumber,
} from './numbers.ts'
import type { TokenType } from './token-type.ts'
import { token } from './token.ts'

/** All token types. To add one: write its file, list it here, describe it in interface.md. */
export const TOKEN_TYPES: readonly TokenType[] = [
  token,
  card,
  bank,
  cardNumber,
  usBankAccountNumber,
  usBankRoutingNumber,
  socialSecurityNumber,
  employerIdNumber,
]

const BY_NAME: ReadonlyMap<string, TokenType> = new Map(TOKEN_TYPES.map((it) => [it.name, it]))

export function findTokenType(name: string): TokenType | undefined {
  return BY_NAME.get(name)
}
