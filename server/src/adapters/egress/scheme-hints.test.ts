/** A URL whose scheme is not what the port speaks is the likeliest mistake, and the hardest to see in an error. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parseDestination } from '../../base/destination.ts'
import {
  senderOf,
  type EgressFailure,
  type EgressFault,
  type EgressHint,
} from '../../ports/egress.ts'
import { collector } from '../../../test/kit/collector.ts'
import {
  onRequest,
  testAuthority,
  testDestination,
  type ConnectionHandler,
} from '../../../test/kit/test-destination.ts'
import { UndiciEgress } from './undici-egress.ts'

const CARRIERS = { undici: [], node: ['Keep-Alive', 'timeout=5'] } as const
const NO_CONTENT = 'HTTP/1.1 204 No Content\r\n\r\n'
const TLS_ALERT = Buffer.from([0x15, 3, 1, 0, 2, 2, 70])

const answers = (bytes: string | Buffer): ConnectionHandler => {
  return (socket) => void socket.on('data', () => socket.end(bytes))
}
const closes: ConnectionHandler = (socket) => void socket.on('data', () => socket.end())
const answersOnce = onRequest((socket) => {
  if (socket.bytesWritten === 0) socket.write(NO_CONTENT)
  else socket.end()
})

interface Case {
  readonly what: string
  readonly scheme: 'http' | 'https'
  readonly tls: boolean
  readonly answer: ConnectionHandler
  readonly fault: EgressFault
  readonly hint: EgressHint | null
}

const CASES: readonly Case[] = [
  ...[
    ['a server that speaks http', answers(`HTTP/1.1 400 Bad Request\r\n\r\n`)] as const,
    ['a server of another protocol', answers('220 ready\r\n')] as const,
  ].map(([what, answer]): Case => {
    return { what, scheme: 'https', tls: false, answer, fault: 'tls', hint: 'no-tls' }
  }),
  {
    what: 'a server that closes',
    scheme: 'https',
    tls: false,
    answer: closes,
    fault: 'tls',
    hint: null,
  },
  {
    what: 'a TLS server',
    scheme: 'http',
    tls: true,
    answer: answers(NO_CONTENT),
    fault: 'reset',
    hint: 'perhaps-tls',
  },
  {
    what: 'a TLS server that sends an alert',
    scheme: 'http',
    tls: false,
    answer: answers(TLS_ALERT),
    fault: 'answer-invalid',
    hint: 'tls',
  },
  {
    what: 'a server of another protocol',
    scheme: 'http',
    tls: false,
    answer: answers('220 ready\r\n'),
    fault: 'answer-invalid',
    hint: null,
  },
  {
    what: 'a server that closes after the handshake',
    scheme: 'https',
    tls: true,
    answer: closes,
    fault: 'reset',
    hint: null,
  },
]

for (const carrier of ['undici', 'node'] as const) {
  describe(`what ${carrier} reports`, () => {
    for (const { what, scheme, tls, answer, fault, hint } of CASES) {
      test(`for ${scheme} to ${what}: ${fault}, ${hint}`, async (t) => {
        const { send } = await stage(t, { scheme, tls, answer, carrier })
        const error = await send()
        assert.deepEqual([error?.fault, error?.hint], [fault, hint])
      })
    }

    test('of a connection that has carried a response: no hint', async (t) => {
      const { send } = await stage(t, { scheme: 'http', tls: false, answer: answersOnce, carrier })
      assert.equal(await send(), null)
      const error = await send()
      assert.deepEqual([error?.fault, error?.hint], ['reset', null])
    })
  })
}

interface HintStage extends Pick<Case, 'scheme' | 'tls' | 'answer'> {
  readonly carrier: keyof typeof CARRIERS
}

/** Starts a destination and an egress gateway; `send` returns how its request failed, null if it did not. */
async function stage(
  t: { after: (end: () => Promise<void>) => unknown },
  { scheme, tls, answer, carrier }: HintStage,
) {
  const destination = await testDestination(answer, tls ? { certificate: 'destination' } : null)
  const egress = new UndiciEgress({
    allow: [parseDestination('127.0.0.1/32')!],
    extraAuthorities: [testAuthority()],
    resolve: async () => ['127.0.0.1'],
  })
  t.after(async () => {
    await egress.close()
    await destination.close()
  })
  const url = new URL(`${scheme}://destination.test:${destination.port}/`)
  const body = Buffer.from('{}')
  const request = { method: 'POST', headers: CARRIERS[carrier], body, timeoutMs: 600_000 }
  return {
    send: async (): Promise<EgressFailure | null> => {
      const route = await egress.vet(senderOf('tenant-a'), url, null)
      return await egress.send(route, request, collector()).done.then(
        () => null,
        (error: EgressFailure) => error,
      )
    },
  }
}
