/**
 * Which tokens a list is about, as plain data: what may be seen, and what is looked for.
 *
 * A store takes both for granted: whoever asks has found out what the caller may see.
 */
export interface TokenQuery {
  readonly where: TokenCondition
  /** Only tokens of which a container is one of these or lies below it; null stands for all there are. */
  readonly within: readonly string[] | null
  /** Tokens that are expired at this instant are not there. */
  readonly now: number
}

/** A condition on a token; what it does not have meets none but `not`. */
export type TokenCondition =
  /** Every one of none holds. */
  | { readonly kind: 'all'; readonly of: readonly TokenCondition[] }
  /** None of none holds. */
  | { readonly kind: 'any'; readonly of: readonly TokenCondition[] }
  | { readonly kind: 'not'; readonly of: TokenCondition }
  | { readonly kind: 'id'; readonly ids: readonly string[] }
  | { readonly kind: 'type'; readonly type: string }
  /** In this container, or `below` it as well. */
  | { readonly kind: 'container'; readonly path: string; readonly below: boolean }
  | { readonly kind: 'fingerprint'; readonly fingerprint: string }
  /** One of StoredToken.indexes. */
  | { readonly kind: 'index'; readonly hash: Uint8Array }
  /** The value as it is when `exact`, otherwise whatever its case: see foldCase(). */
  | {
      readonly kind: 'metadata'
      readonly key: string
      readonly value: string
      readonly exact: boolean
    }
  | { readonly kind: 'made-by'; readonly how: 'created' | 'modified'; readonly id: string }
  /** Both bounds inclusive, in epoch milliseconds; null for none. */
  | {
      readonly kind: 'made-at'
      readonly how: 'created' | 'modified'
      readonly from: number | null
      readonly to: number | null
    }

/** Holds for every token. */
export const ANY_TOKEN: TokenCondition = { kind: 'all', of: [] }

/** Where a list goes on: below an internal id, or at the newest when it is null. */
export interface TokenStretch {
  readonly after: string | null
  /** At most so many. */
  readonly size: number
}
