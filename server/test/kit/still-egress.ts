import { coversHost, parseDestination } from '../../src/base/destination.ts'
import {
  EgressFailure,
  EgressRefusal,
  type Egress,
  type EgressFault,
  type EgressRule,
  type OutboundCall,
  type OutboundReceiver,
  type OutboundRequest,
  type Sender,
  type Route,
} from '../../src/ports/egress.ts'

/** A complete request as sent. */
export interface SentRequest {
  readonly sender: Sender
  readonly url: string
  readonly method: string
  /** Names and values, alternating. */
  readonly headers: readonly string[]
  readonly body: Buffer
}

/** A response: all members given here, in order, and then the fault if there is one. */
export interface StillAnswer {
  readonly status?: number
  readonly reason?: string
  readonly headers?: readonly string[]
  readonly chunks?: readonly (string | Uint8Array)[]
  /** Without a status, it comes before any header section. */
  readonly fault?: EgressFault
}

/** An egress gateway without a network: records the requests it gets, and answers as tests tell it. */
export interface StillEgress extends Egress {
  readonly vetted: {
    readonly sender: Sender
    readonly url: string
    readonly allowedDestinations: unknown
  }[]
  readonly sent: SentRequest[]
  /** Number of calls aborted before their end. */
  aborted: number
  /** Returns the response; 200 without a body unless replaced. */
  reply: (sent: SentRequest) => StillAnswer
  /** Returns the rule that a destination violates; only plain http is refused unless replaced. */
  refuse: (url: URL) => EgressRule | Extract<EgressFault, 'unresolved'> | null
}

export function stillEgress(): StillEgress {
  const egress: StillEgress = {
    vetted: [],
    sent: [],
    aborted: 0,
    reply: () => ({ status: 200, reason: 'OK' }),
    refuse: (url) => (url.protocol === 'https:' ? null : 'scheme'),
    async vet(sender, url, allowedDestinations) {
      egress.vetted.push({ sender, url: url.href, allowedDestinations })
      const { hostname, port } = url
      const covered = (allowedDestinations ?? []).map(parseDestination).some((it) => {
        return it !== null && coversHost(it, hostname, port === '' ? 443 : Number(port))
      })
      if (allowedDestinations !== null && !covered) throw new EgressRefusal('unlisted')
      const refused = egress.refuse(url)
      if (refused === 'unresolved') throw new EgressFailure(refused)
      if (refused !== null) throw new EgressRefusal(refused)
      return { sender, url, rule: { name: 'public' } }
    },
    send: (route, request, receiver) => stillCall(egress, route, request, receiver),
    tunnel: () => Promise.reject(new EgressRefusal('unlisted')),
    close: async () => undefined,
  }
  return egress
}

function stillCall(
  egress: StillEgress,
  { sender, url }: Route,
  request: OutboundRequest,
  receiver: OutboundReceiver,
): OutboundCall {
  const end = Promise.withResolvers<void>()
  let over = false
  let goOn: () => void = () => {}
  const settle = (finish: () => void): void => {
    if (!over) finish()
    over = true
  }
  play().then(
    () => settle(end.resolve),
    (error: unknown) => settle(() => end.reject(error)),
  )
  return {
    done: end.promise,
    resume: () => goOn(),
    abort: () => {
      settle(() => {
        egress.aborted += 1
        end.reject(new EgressFailure('aborted'))
      })
      goOn()
    },
  }

  async function play(): Promise<void> {
    const { method, headers } = request
    const body = await wholeBody(request.body)
    const sent = { sender, url: url.href, method, headers, body }
    egress.sent.push(sent)
    const { status, reason = '', headers: theirs = [], chunks = [], fault } = egress.reply(sent)
    if (status !== undefined && !over) receiver.headerSection(status, reason, theirs)
    for (const chunk of chunks) {
      if (over) return
      const { promise, resolve } = Promise.withResolvers<void>()
      goOn = resolve
      if (!receiver.data(Buffer.from(chunk))) await promise
    }
    if (fault !== undefined) throw new EgressFailure(fault)
    if (!over) receiver.end()
  }
}

async function wholeBody(body: OutboundRequest['body']): Promise<Buffer> {
  if (body === null) return Buffer.alloc(0)
  if (body instanceof Uint8Array) return Buffer.from(body)
  const chunks: Uint8Array[] = []
  try {
    for await (const chunk of body.chunks) chunks.push(chunk)
  } catch (cause) {
    throw new EgressFailure('request', { cause })
  }
  const whole = Buffer.concat(chunks)
  if (body.length !== null && body.length !== whole.length) throw new EgressFailure('request')
  return whole
}
