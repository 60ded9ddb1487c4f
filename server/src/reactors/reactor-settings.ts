/** What an operator may set about reactors. */
export interface ReactorSettings {
  /** Whether one without a configuration is refused; otherwise it has an empty one. */
  readonly configurationRequired: boolean
}
