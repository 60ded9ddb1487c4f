/** The reason the service cannot be set up or started: one sentence for the operator. Nothing was changed. */
export class SetUpError extends Error {
  override readonly name = 'SetUpError'
  readonly code: 'name-invalid' | 'name-taken' | 'root-key-other' | 'root-key-damaged'

  constructor(code: SetUpError['code'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}
