import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

/** Stops reading `socket`, even when other code resumes it. */
export function holdPaused(socket: Duplex): void {
  socket.pause()
  socket.resume = () => socket
}

/** Ends holdPaused(), and resumes. */
export function endHold(socket: Duplex): void {
  Reflect.deleteProperty(socket, 'resume')
  socket.resume()
}

/**
 * Has Node hand what arrives on a connection to an HTTP server to `take`, and returns the function with which Node would have
 * parsed it. While `isHeld`, a socket that is resumed is still not read.
 */
export function takeOverData(
  socket: Duplex,
  take: (chunk: Buffer) => void,
  isHeld: () => boolean,
): (chunk: Buffer) => void {
  const [parse] = socket.listeners('data') as [(chunk: Buffer) => void]
  const onPause = socket.listeners('pause') as (() => void)[]
  const onResume = socket.listeners('resume') as (() => void)[]
  socket.off('data', parse)
  socket.on('data', take)
  if (!(socket instanceof Socket)) return parse
  // With its first listener for data, Node takes away those that stop reading the socket whenever the stream pauses. Without
  // them the stream would read ahead.
  for (const it of onPause) if (!socket.listeners('pause').includes(it)) socket.on('pause', it)
  for (const it of onResume) {
    socket.off('resume', it)
    socket.on('resume', () => {
      if (!isHeld()) it.call(socket)
    })
  }
  socket._read = () => {}
  return parse
}

/** Whether Node has paused a connection because its client does not take the responses. */
export function isPausedByNode(socket: Duplex): boolean {
  return (socket as PausableSocket)._paused === true
}

/** Calls `parse`, which would throw while Node has paused the connection. It stays paused. */
export function parseThoughPaused(socket: Duplex, parse: () => void): void {
  const paused = isPausedByNode(socket)
  ;(socket as PausableSocket)._paused = false
  parse()
  ;(socket as PausableSocket)._paused = paused
  if (paused) socket.pause()
}

type PausableSocket = Duplex & { _paused?: boolean }

/**
 * Has `read` called in place of `socket.read()`, which it is given. Calls with a size are left alone: streams make them to
 * request more data.
 */
export function interceptReads(
  socket: Socket,
  read: (own: (size?: number) => Buffer | null) => Buffer | null,
): void {
  const own = socket.read.bind(socket) as (size?: number) => Buffer | null
  socket.read = (size?: number): Buffer | null => (size === undefined ? read(own) : own(size))
}
