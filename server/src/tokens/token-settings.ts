/** What an operator may set about tokens. */
export interface TokenSettings {
  /** Tokens one tokenize request may make. */
  readonly tokensMax: number
  /** Whether tokens show the deprecated `privacy` member. */
  readonly privacyShown: boolean
}
