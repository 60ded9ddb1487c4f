import { createHmac } from 'node:crypto'
import type { Sensitive } from '../../base/sensitive.ts'

/** What is signed, as it goes out. */
export interface Signed {
  readonly id: string
  /** In seconds. */
  readonly timestamp: number
  readonly body: string
}

/**
 * Returns the value of the header `webhook-signature`: one signature for each secret that is good, so that whoever
 * knows one of them can verify. Source: Standard Webhooks, symmetric signatures.
 */
export function signatureOf(
  { id, timestamp, body }: Signed,
  secrets: readonly Sensitive<string>[],
) {
  return secrets
    .map((it) => {
      const key = Buffer.from(it.reveal().slice(SECRET_PREFIX.length), 'base64')
      const mac = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
      return `v1,${mac}`
    })
    .join(' ')
}

export const SECRET_PREFIX = 'whsec_'
