/** Where chance comes from: cryptographically strong, cheap in small portions. */
export interface Random {
  /** Returns `length` fresh random bytes that nobody else has seen or will see. */
  bytes(length: number): Uint8Array
}
