import type { OutboundReceiver } from '../../src/ports/egress.ts'

/** Takes an answer as it comes, and keeps it. */
export interface Collected extends OutboundReceiver {
  readonly status: number | null
  readonly reason: string
  readonly headers: readonly string[]
  readonly body: Buffer
  /** What was told, in order. */
  readonly told: readonly ('header section' | 'data' | 'end')[]
}

/** `more` says after each chunk whether the next may come at once. */
export function collector(more: () => boolean = () => true): Collected {
  const told: ('header section' | 'data' | 'end')[] = []
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
    told,
    headerSection(status, reason, headers) {
      told.push('header section')
      headerSection = { status, reason, headers }
    },
    data(chunk) {
      told.push('data')
      chunks.push(Buffer.from(chunk))
      return more()
    },
    end() {
      told.push('end')
    },
  }
}
