/** There is no vault where one must exist: its message says what was looked for, and where. Nothing was made. */
export class NoVault extends Error {
  override readonly name = 'NoVault'
}
