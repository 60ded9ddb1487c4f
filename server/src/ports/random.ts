/** Where chance comes from: cryptographically strong, cheap in small portions. */
export interface Random {
  /** Returns `length` fresh random bytes that nobody else has seen or will see. */
  bytes(length: number): Uint8Array
}

/** What the whole world has of it. */
export interface WorldRandom extends Random {
  /**
   * Resolves with a new RSA key of 2048 bits, as PKCS #8 in DER. It takes a good part of a second of a processor, so one is
   * made at a time, for tenants round-robin.
   */
  signingKey(tenantId: string): Promise<Uint8Array>
}
