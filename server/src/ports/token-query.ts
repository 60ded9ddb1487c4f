/**
 * A query for tokens, as plain data: the containers it may see, and its conditions.
 *
 * A store does not check permissions: the caller determines what it may see.
 */
export interface TokenQuery {
  readonly where: TokenCondition
  /** Only tokens with a container that is one of these or lies below it; null for all tokens. */
  readonly within: readonly string[] | null
  /** Tokens that are expired at this instant are left out. */
  readonly now: number
}

/** A condition on a token; a missing attribute matches none but `not`. */
export type TokenCondition =
  /** Holds if empty. */
  | { readonly kind: 'all'; readonly of: readonly TokenCondition[] }
  /** Does not hold if empty. */
  | { readonly kind: 'any'; readonly of: readonly TokenCondition[] }
  | { readonly kind: 'not'; readonly of: TokenCondition }
  | { readonly kind: 'id'; readonly ids: readonly string[] }
  | { readonly kind: 'type'; readonly type: string }
  /** In this container, or also `below` it. */
  | { readonly kind: 'container'; readonly path: string; readonly below: boolean }
  | { readonly kind: 'fingerprint'; readonly fingerprint: string }
  /** One of StoredToken.indexes. */
  | { readonly kind: 'index'; readonly hash: Uint8Array }
  /** Matches the value exactly if `exact`, otherwise ignoring case: see foldCase(). */
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

/** What duplicates have in common, and where one is looked for. */
export interface DuplicateQuery {
  readonly type: string
  readonly fingerprint: string
  /** Only tokens with a container that is one of these or lies below it; undefined for all tokens. */
  readonly containers?: readonly string[] | undefined
}

/** Holds for every token. */
export const ANY_TOKEN: TokenCondition = { kind: 'all', of: [] }

/** Where a list continues: below an internal id, or at the newest if it is null. */
export interface TokenStretch {
  readonly after: string | null
  /** The maximum number of tokens. */
  readonly size: number
}
