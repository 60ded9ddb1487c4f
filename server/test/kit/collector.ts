import type { OutboundReceiver } from '../../src/world/egress.ts'

/** Takes an answer as it comes, and keeps it. */
export interface Collected extends OutboundReceiver {
  readonly status: number | null
  readonly reason: string
  readonly headers: readonly string[]
  readonly body: Buffer
  /** What was told, in order. */
  readonly told: readonly ('head' | 'data' | 'end')[]
}

/** `more` says after each chunk whether the next may come at once. */
export function collector(more: () => boolean = () => true): Collected {
  const told: ('head' | 'data' | 'end')[] = []
  const chunks: Buffer[] = []
  let head: { status: number; reason: string; headers: readonly string[] } | null = null
  return {
    get status() {
      return head?.status ?? null
    },
    get reason() {
      return head?.reason ?? ''
    },
    get headers() {
      return head?.headers ?? []
    },
    get body() {
      return Buffer.concat(chunks)
    },
    told,
    head(status, reason, headers) {
      told.push('head')
      head = { status, reason, headers }
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
