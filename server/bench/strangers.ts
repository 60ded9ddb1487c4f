/**
 * Callers that a vault cannot choose, in a process of their own: `node strangers.ts <kind> <port> <key>`. Kinds:
 * - `document`: connections that ask for the OpenAPI document, pipelined and without a key, and read nothing.
 * - `nowhere`: the same for a path that does not exist, and they read everything. Those that have had all responses begin anew.
 * - `bodies`: senders of the largest body that the public key may send, one after the other.
 *
 * Prints a line once they are at it, and their counts as JSON when their standard input ends.
 */
import { connect, type Socket } from 'node:net'
import { postBytes } from './load.ts'

const [kind, port, key = ''] = process.argv.slice(2)

/** As the line of the attack says: so many connections, with so many requests each. */
const CONNECTIONS = 200
const REQUESTS = 3_000
const SENDERS = 2
/** As many as one payload may have. */
const STRINGS = 10_000
/** The limits of bodies that a public key may have, from the largest. */
const SIZES = [5 * 2 ** 20, 256 * 2 ** 10]

const counts = { responses: 0, bytes: 0 }

const CUT = Buffer.byteLength('POST /tokenize HTTP/1.1\r\n')
const CLOSE = Buffer.from('connection: close\r\n')

if (kind === 'bodies') await sendBodies()
else for (let it = 0; it < CONNECTIONS; it++) pipeline()
process.stdout.write('begun\n')
process.stdin.resume().once('end', () => {
  process.stdout.write(`${JSON.stringify(counts)}\n`, () => process.exit())
})

function dial(): Socket {
  const socket = connect({
    port: Number(port),
    host: '127.0.0.1',
    localAddress: '127.0.0.2',
    noDelay: true,
  })
  return socket.on('error', () => {})
}

function pipeline(): void {
  const path = kind === 'document' ? '/openapi.json' : '/nowhere'
  const socket = dial()
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`.repeat(REQUESTS))
  if (kind === 'document') socket.pause()
  let responses = 0
  socket.on('data', (chunk: Buffer) => {
    counts.bytes += chunk.length
    const came = chunk.toString('latin1').split('HTTP/1.1 404').length - 1
    counts.responses += came
    responses += came
    // A status line that falls into two chunks is not counted.
    if (responses > REQUESTS * 0.99) socket.destroy()
  })
  socket.once('close', () => setTimeout(pipeline, 10))
}

async function sendBodies(): Promise<void> {
  for (const size of SIZES) {
    const request = postBytes('/tokenize', payloadOf(size), { 'bt-api-key': key })
    if ((await statusOf(request)) !== 200) continue
    for (let it = 0; it < SENDERS; it++) void sendForever(request)
    return
  }
  throw new Error('The public key may send none of the bodies')
}

/** A JSON array of as many strings as there may be, of `bytes` in total. */
function payloadOf(bytes: number): string {
  const chars = Math.floor((bytes - 2) / STRINGS) - 3
  return JSON.stringify(
    Array.from({ length: STRINGS }, (_, at) => `${at}`.padEnd(chars, 'x').slice(0, chars)),
  )
}

async function sendForever(request: Buffer): Promise<void> {
  for (;;) if ((await statusOf(request)) === 200) counts.responses += 1
}

function statusOf(request: Buffer): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>()
  const socket = dial()
  socket.write(Buffer.concat([request.subarray(0, CUT), CLOSE, request.subarray(CUT)]))
  let status = 0
  socket.on('data', (chunk: Buffer) => {
    if (status === 0) status = Number(chunk.toString('latin1', 9, 12))
    counts.bytes += chunk.length
  })
  socket.once('close', () => resolve(status))
  return promise
}
