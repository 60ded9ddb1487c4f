/** Destinations for tests of the egress gateway: loopback servers whose response tests set, down to the byte. */
import { readFileSync } from 'node:fs'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer, type TlsOptions } from 'node:tls'
import { fileURLToPath } from 'node:url'

export interface TestDestination {
  readonly port: number
  /** Returns the number of connections accepted so far. */
  readonly accepted: () => number
  readonly open: () => number
  readonly close: () => Promise<void>
}

export type ConnectionHandler = (socket: Socket) => void

const HERE = new URL('certificates/', import.meta.url)

export type CertificateName = 'destination' | 'other' | 'expired' | 'self-signed'

/** Path of the certificate of the authority that signs test certificates. */
export const AUTHORITY_FILE = fileURLToPath(new URL('authority.pem', HERE))

/** Returns the certificate of the authority that signs test certificates. */
export function testAuthority(): string {
  return readFileSync(AUTHORITY_FILE, 'utf8')
}

/** Starts a server of raw bytes, over TLS if given a certificate. */
export async function testDestination(
  answer: ConnectionHandler,
  tls: (TlsOptions & { readonly certificate: CertificateName }) | null = null,
  host = '127.0.0.1',
): Promise<TestDestination> {
  const sockets = new Set<Socket>()
  let accepted = 0
  const serve = (socket: Socket): void => {
    socket.on('error', () => socket.destroy())
    answer(socket)
  }
  const server: Server =
    tls === null
      ? createServer(serve)
      : createTlsServer({ ...pairOf(tls.certificate), ...tls }, serve)
  server.on('connection', (socket: Socket) => {
    accepted += 1
    sockets.add(socket)
    socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket))
  })
  const listening = Promise.withResolvers<void>()
  server.on('error', listening.reject).listen(0, host, listening.resolve)
  await listening.promise
  return {
    port: (server.address() as AddressInfo).port,
    accepted: () => accepted,
    open: () => sockets.size,
    close: async () => {
      const closed = Promise.withResolvers<void>()
      server.close(() => closed.resolve())
      for (const socket of sockets) socket.destroy()
      await closed.promise
    },
  }
}

/** Calls `answer` with each request once its header section and a body of known length have arrived. */
export function onRequest(
  answer: (socket: Socket, headerSection: string, body: Buffer) => void,
): ConnectionHandler {
  return (socket) => {
    let parts: Buffer[] = []
    let held = 0
    /** Nothing is complete with fewer bytes. */
    let needed = 0
    socket.on('data', (chunk: Buffer) => {
      parts.push(chunk)
      held += chunk.length
      if (held < needed) return
      let bytes = Buffer.concat(parts)
      needed = 0
      for (;;) {
        const end = bytes.indexOf('\r\n\r\n')
        if (end === -1) break
        const headerSection = bytes.toString('latin1', 0, end)
        const length = Number(/^content-length: (\d+)$/im.exec(headerSection)?.[1] ?? 0)
        const whole = end + 4 + length
        if (bytes.length < whole) {
          needed = whole
          break
        }
        const body = bytes.subarray(end + 4, whole)
        bytes = bytes.subarray(whole)
        answer(socket, headerSection, body)
      }
      parts = [bytes]
      held = bytes.length
    })
  }
}

function pairOf(name: CertificateName): { key: Buffer; cert: Buffer } {
  return {
    key: readFileSync(new URL('server.key', HERE)),
    cert: readFileSync(new URL(`${name}.pem`, HERE)),
  }
}
