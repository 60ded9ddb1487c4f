/**
 * Returns the SHA-256 of a public key in hex. The iframe's URL names the application by it, since URLs are logged and keys should
 * not be.
 */
export async function keyHashOf(publicKey: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(publicKey))
  return [...new Uint8Array(digest)].map((it) => it.toString(16).padStart(2, '0')).join('')
}
