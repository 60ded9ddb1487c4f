import type { Egress, OutboundRequest, Route } from '../../src/world/egress.ts'

export interface Sent {
  readonly route: Route
  readonly request: OutboundRequest
  readonly body: Buffer
}

/** A door out that leads nowhere: it remembers what was sent, and answers what it is told to. */
export class ToldEgress implements Egress {
  readonly sent: Sent[] = []
  answer: { status: number; reason?: string; headers?: string[]; body?: string } = { status: 200 }

  async vet(tenantId: string, url: URL): Promise<Route> {
    return { tenantId, url, rule: { name: 'public' } }
  }

  send(route: Route, request: OutboundRequest, receiver: Parameters<Egress['send']>[2]) {
    const run = async (): Promise<void> => {
      const chunks: Uint8Array[] = []
      if (request.body instanceof Uint8Array) chunks.push(request.body)
      else if (request.body !== null) for await (const it of request.body.chunks) chunks.push(it)
      this.sent.push({ route, request, body: Buffer.concat(chunks) })
      const { status, reason = 'OK', headers = [], body = '' } = this.answer
      receiver.head(status, reason, headers)
      if (body !== '') receiver.data(Buffer.from(body))
      receiver.end()
    }
    return { done: run(), resume: () => {}, abort: () => {} }
  }

  async close(): Promise<void> {}
}
