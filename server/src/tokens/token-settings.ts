/** Operator settings for tokens. */
export interface TokenSettings {
  /** Maximum number of tokens one tokenize request may create. */
  readonly tokensMax: number
  /** Whether tokens show the deprecated `privacy` member. */
  readonly privacyShown: boolean
}
