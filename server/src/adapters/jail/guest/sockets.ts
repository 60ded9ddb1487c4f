/**
 * Makes `net` and `tls` connect over the pipe to the host. There is no other way out, so undoing this gains nothing.
 *
 * A connection is an ordinary `net.Socket` whose bytes take another path, so `http`, `https`, `fetch` and libraries on
 * top run unchanged. TLS is end to end, between the guest and the destination.
 */
import { syncBuiltinESMExports } from 'node:module'
import net, { Socket } from 'node:net'
import tls from 'node:tls'
import type { Connections } from './connections.ts'

/** Node's own function: only calls by the code are counted. */
const { setDefaultCACertificates } = tls

export function replaceSockets(connections: Connections, authorities: readonly string[]): void {
  let trusted = authorities.length === 0
  Socket.prototype.connect = function (this: Socket, ...args: unknown[]): Socket {
    const [options, listener] = normalize(args)
    if (listener !== null) this.once('connect', listener)
    connect(this, options, connections)
    return this
  }
  const connectTls: (options: object, listener?: () => void) => tls.TLSSocket = tls.connect
  tls.connect = (...args: unknown[]) => {
    if (!trusted) {
      setDefaultCACertificates([...tls.getCACertificates('default'), ...authorities])
      trusted = true
    }
    const [given, listener] = normalize(args)
    const extra = args.slice(1, 3).find((it) => typeof it === 'object' && it !== null)
    const options: SocketTarget = { ...given, ...extra }
    options.socket ??= net.connect({
      host: options.host ?? 'localhost',
      port: Number(options.port),
      // Else it would close at its end, and with it the connection above it, which may hold what was not read yet.
      allowHalfOpen: true,
    })
    return connectTls(options, listener ?? undefined)
  }
  syncBuiltinESMExports()
}

interface SocketTarget {
  host?: string
  port?: number | string
  path?: string | null
  socket?: Socket
}

/** Returns options and listener for any signature of `connect`, with Node's own function. */
function normalize(args: unknown[]): [SocketTarget, (() => void) | null] {
  const inner = net as unknown as {
    _normalizeArgs(args: unknown): [SocketTarget, (() => void) | null]
  }
  const [first] = args
  return Array.isArray(first) ? (first as [SocketTarget, null]) : inner._normalizeArgs(args)
}

/** The members of a socket that decide where its bytes go. */
interface Ways {
  connecting: boolean
  _peername: object
  _read: () => void
  _write: (chunk: Buffer, encoding: BufferEncoding, done: (error?: Error) => void) => void
  _writev: null
  _final: (done: () => void) => void
  _destroy: (error: Error | null, done: (error?: Error | null) => void) => void
  _unrefTimer: () => void
}

type GuestSocket = Omit<Socket, keyof Ways> & Ways

function connect(
  given: Socket,
  { host = 'localhost', port, path }: SocketTarget,
  all: Connections,
): void {
  const socket = given as unknown as GuestSocket
  if (typeof path === 'string') {
    process.nextTick(() => socket.destroy(new Error('Sockets of the file system are out of reach')))
    return
  }
  let owed = 0
  let finished = false
  let closed = false
  socket.connecting = true
  const connection = all.open(
    { host, port: Number(port) },
    {
      opened() {
        socket.connecting = false
        socket.emit('connect')
        socket.emit('ready')
      },
      data(chunk) {
        socket._unrefTimer()
        owed += chunk.length
        if (socket.push(chunk)) pay()
      },
      finished() {
        finished = true
        socket.push(null)
      },
      closed(error) {
        closed = true
        // Clients wait for a connection or an error, not for a close.
        const early = socket.connecting ? new Error('The connection was closed') : undefined
        const reason = error ?? early
        // What came before its end can still be read; then the socket closes by itself, as one of the system does.
        if (!finished || reason !== undefined) socket.destroy(reason)
      },
      dropped: () => void socket.destroy(),
    },
  )
  const destroy = socket._destroy.bind(socket)
  Object.assign(socket, {
    _peername: { address: host, port: Number(port), family: 'IPv4' },
    _read: pay,
    _write(chunk: Buffer, encoding: BufferEncoding, done: (error?: Error) => void) {
      socket._unrefTimer()
      if (closed) return done(new Error('The connection was closed'))
      connection.write(Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk, encoding), done)
    },
    _writev: null,
    _final(done: () => void) {
      connection.finish()
      done()
    },
    _destroy(error: Error | null, done: () => void) {
      connection.close()
      destroy(error, done)
    },
  } satisfies Partial<Ways>)

  /** Grants credit for the bytes received since the last call. */
  function pay(): void {
    if (owed > 0) connection.used(owed)
    owed = 0
  }
}
