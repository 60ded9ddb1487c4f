import {
  constants,
  createHmac,
  createPrivateKey,
  createPublicKey,
  sign,
  type KeyObject,
} from 'node:crypto'
import { promisify } from 'node:util'
import type { Sensitive } from '../../base/sensitive.ts'

/** The signed parts, as sent. */
export interface Signed {
  readonly id: string
  /** In seconds. */
  readonly timestamp: number
  readonly body: string | Uint8Array
}

/**
 * Returns the value of the header `webhook-signature`: one signature per valid secret, so that a receiver who knows any
 * of them can verify it. Source: Standard Webhooks, symmetric signatures.
 */
export function signatureOf(
  { id, timestamp, body }: Signed,
  secrets: readonly Sensitive<string>[],
) {
  return secrets
    .map((it) => {
      const key = Buffer.from(it.reveal().slice(SECRET_PREFIX.length), 'base64')
      const mac = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body)
      return `v1,${mac.digest('base64')}`
    })
    .join(' ')
}

export const SECRET_PREFIX = 'whsec_'

/**
 * Resolves with the value of the header `BT-SIGNATURE`, version v1, for receivers that only know a public key: RSA-PSS with
 * SHA-256 over the body in its canonical form.
 */
export async function publicSignatureOf(
  canonicalBody: Uint8Array,
  signingKey: Sensitive<string>,
): Promise<string> {
  const key = keyOf(signingKey)
  const { RSA_PKCS1_PSS_PADDING: padding, RSA_PSS_SALTLEN_DIGEST: saltLength } = constants
  // Runs on the thread pool: it takes a thousand times as long as an HMAC.
  const options = { key, padding, saltLength }
  const signature = await promisify(sign)('sha256', canonicalBody, options)
  return signature.toString('base64')
}

/** Returns the public key for verification, as PEM. */
export function publicKeyOf(signingKey: Sensitive<string>): string {
  return createPublicKey(keyOf(signingKey)).export({ type: 'spki', format: 'pem' }).toString()
}

function keyOf(signingKey: Sensitive<string>): KeyObject {
  const key = Buffer.from(signingKey.reveal(), 'base64')
  return createPrivateKey({ key, type: 'pkcs8', format: 'der' })
}
