/** A required vault does not exist. The message says what was looked for, and where. Nothing was created. */
export class NoVault extends Error {
  override readonly name = 'NoVault'
}
