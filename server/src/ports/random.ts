/** The source of randomness: cryptographically strong, cheap in small portions. */
export interface Random {
  /** Returns `length` fresh random bytes, never used before or again. */
  bytes(length: number): Uint8Array
}

/** The world's source of randomness, including keys. */
export interface WorldRandom extends Random {
  /**
   * Resolves with a new RSA key of 2048 bits, as PKCS #8 in DER. It takes a good part of a second of CPU time, so one is made at
   * a time, for tenants round-robin.
   */
  signingKey(tenantId: string): Promise<Uint8Array>
}
