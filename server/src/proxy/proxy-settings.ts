export interface ProxySettings {
  /** Maximum time for the header section of a destination's response, and for each pause in its body. */
  readonly timeoutMs: number
}
