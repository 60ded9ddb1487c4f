import type { Json } from '../../base/json.ts'

/**
 * All that is known of one kind of token, as data. A type is one record, and one line in registry.ts.
 *
 * Source: interface.md, Token types.
 */
export interface TokenType {
  readonly name: string

  /** Where its tokens live unless the request says otherwise. */
  readonly container: string

  /**
   * Returns `data` as it is kept, or throws DataInvalid naming the members at fault.
   *
   * Data arrives as the caller sent it; what is harmless to tidy (`"02"` for a month) is tidied here.
   */
  readonly parse: (data: Json) => Json

  /** What tokens of this type are told apart by, unless the request says otherwise. */
  readonly fingerprintExpression: string

  /** Whether answers show the default fingerprint expression. */
  readonly fingerprintExpressionShown: boolean

  /** What masked readers see, unless the request says otherwise; null shows them nothing. */
  readonly mask: Json

  readonly searchIndexes: readonly string[]

  /** A text member of the data that is sealed apart and gone after CVC_LIFETIME_MS; null for none. */
  readonly shortLived: string | null

  /** The classification that clients of before containers expect. */
  readonly privacy: { readonly classification: string; readonly impactLevel: string }
}

/** Why data is not of its type: member path (empty for the data itself) to a sentence. Never a value. */
export class DataInvalid extends Error {
  override readonly name = 'DataInvalid'
  readonly members: Readonly<Record<string, string>>

  constructor(members: Readonly<Record<string, string>>) {
    super('The data is not of its type')
    this.members = members
  }
}
