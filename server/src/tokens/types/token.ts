import type { TokenType } from './token-type.ts'

/** A generic token: any JSON value, stored unchanged. Source: interface.md, Token types, `token`. */
export const token: TokenType = {
  name: 'token',
  container: '/general/high/',
  parse: (data) => data,
  fingerprintExpression: '{{ data | stringify }}',
  fingerprintExpressionShown: false,
  mask: null,
  searchIndexes: [],
  shortLived: null,
  privacy: { classification: 'general', impactLevel: 'high' },
}
