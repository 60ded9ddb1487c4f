import type { OutboundReceiver } from '../../src/ports/egress.ts'

/** A receiver that keeps the response it gets. */
export interface Collected extends OutboundReceiver {
  readonly status: number | null
  readonly reason: string
  readonly headers: readonly string[]
  readonly body: Buffer
  /** The calls received, in order. */
  readonly received: readonly ('header section' | 'data' | 'end')[]
}

/** `more` returns after each chunk whether the next may follow at once. */
export function collector(more: () => boolean = () => true): Collected {
  const received: ('header section' | 'data' | 'end')[] = []
  const chunks: Buffer[] = []
  let headerSection: { status: number; reason: string; headers: readonly string[] } | null = null
  return {
    get status() {
      return headerSection?.status ?? null
    },
    get reason() {
      return headerSection?.reason ?? ''
    },
    get headers() {
      return headerSection?.headers ?? []
    },
    get body() {
      return Buffer.concat(chunks)
    },
    received,
    headerSection(status, reason, headers) {
      received.push('header section')
      headerSection = { status, reason, headers }
    },
    data(chunk) {
      received.push('data')
      chunks.push(Buffer.from(chunk))
      return more()
    },
    end() {
      received.push('end')
    },
  }
}
