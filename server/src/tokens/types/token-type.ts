import type { Json } from '../../base/json.ts'

/**
 * A token type, described as data. Each type is one object, and one line in registry.ts.
 *
 * Source: interface.md, Token types.
 */
export interface TokenType {
  readonly name: string

  /** The container of its tokens unless the request names others. */
  readonly container: string

  /**
   * Returns `data` as it is stored, or throws DataInvalid with the invalid members.
   *
   * Data arrives as the caller sent it; harmless variants (`"02"` for a month) are normalized here.
   */
  readonly parse: (data: Json) => Json

  /** Expression of the fingerprint, unless the request has its own. */
  readonly fingerprintExpression: string

  /** Whether answers show the default fingerprint expression. */
  readonly fingerprintExpressionShown: boolean

  /** Mask shown to masked readers, unless the request has its own; null shows them nothing. */
  readonly mask: Json

  readonly searchIndexes: readonly string[]

  /** A text member of the data that is sealed separately and destroyed after CVC_LIFETIME_MS; null for none. */
  readonly shortLived: string | null

  /** The classification expected by clients that predate containers. */
  readonly privacy: { readonly classification: string; readonly impactLevel: string }
}

/** The reasons why data does not fit its type: member path (empty for the data itself) to a sentence. Never holds a value. */
export class DataInvalid extends Error {
  override readonly name = 'DataInvalid'
  readonly members: Readonly<Record<string, string>>

  constructor(members: Readonly<Record<string, string>>) {
    super('The data is not of its type')
    this.members = members
  }
}
