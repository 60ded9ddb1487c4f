export interface ProxySettings {
  /** How long the header section of a destination's answer may take, and how long its body may pause. */
  readonly timeoutMs: number
}
