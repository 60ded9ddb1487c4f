/**
 * How the operator's commands speak with the service that runs: a socket in the data folder, which is the
 * owner's alone. One line of JSON goes in, and lines of JSON come out until the work is done.
 */
import { chmodSync, closeSync, openSync, rmSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/** Does what a line asks for; whatever it says meanwhile is told to whoever asked. */
export type Listener = (order: unknown, tell: (news: object) => void) => Promise<void>

interface LastWord {
  readonly done: boolean
  /** Why it was not done. */
  readonly reason?: string
}

/** Takes orders until it is closed. Whoever holds the data folder calls this, and nobody else. */
export async function takeOrders(
  folder: string,
  listener: Listener,
): Promise<{ close: () => Promise<void> }> {
  const path = socketPathIn(folder)
  const open = new Set<Socket>()
  const server = createServer((socket) => {
    open.add(socket)
    socket.on('error', () => socket.destroy())
    socket.on('close', () => open.delete(socket))
    createInterface(socket).once('line', (line) => void answer(socket, line, listener))
  })
  try {
    rmSync(join(folder, NAME), { force: true })
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    server.once('error', reject).listen(path.text, resolve)
    await promise
    chmodSync(path.text, 0o600)
  } finally {
    path.close()
  }
  return {
    close: async () => {
      for (const it of open) it.destroy()
      const { promise, resolve } = Promise.withResolvers<void>()
      server.close(() => resolve())
      await promise
      rmSync(join(folder, NAME), { force: true })
    },
  }
}

/**
 * Has the service on `folder` do something. Returns false when no service runs there; throws what it could
 * not do, and when it went away meanwhile.
 */
export async function giveOrder(
  folder: string,
  order: object,
  hear: (news: Record<string, unknown>) => void,
): Promise<boolean> {
  const path = socketPathIn(folder)
  const socket = connect(path.text)
  const { promise, resolve, reject } = Promise.withResolvers<boolean>()
  socket.once('connect', () => resolve(true))
  socket.once('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ECONNREFUSED') resolve(false)
    else reject(error)
  })
  try {
    if (!(await promise)) return false
  } finally {
    path.close()
  }
  socket.write(`${JSON.stringify(order)}\n`)
  for await (const line of createInterface(socket)) {
    const news = JSON.parse(line) as Record<string, unknown>
    if (!('done' in news)) hear(news)
    else if (news['done'] === true) return true
    else throw new Error(String(news['reason']))
  }
  throw new Error('The service stopped; what it began it goes on with when it is started again')
}

async function answer(socket: Socket, line: string, listener: Listener): Promise<void> {
  const say = (news: object): void => void socket.write(`${JSON.stringify(news)}\n`)
  let last: LastWord = { done: true }
  try {
    await listener(JSON.parse(line), say)
  } catch (error) {
    last = { done: false, reason: error instanceof Error ? error.message : String(error) }
  }
  say(last)
  socket.end()
}

/**
 * Returns a path for the socket that is short enough for one, and what to do when it was used.
 *
 * Of longer ones the kernel would cut the end off; an open folder has a short name as well.
 * Source: unix(7), sun_path.
 */
function socketPathIn(folder: string): { readonly text: string; readonly close: () => void } {
  const text = join(folder, NAME)
  if (Buffer.byteLength(text) < PATH_BYTES_MAX) return { text, close: () => {} }
  const descriptor = openSync(folder, 'r')
  return {
    text: `/proc/self/fd/${descriptor}/${NAME}`,
    close: () => closeSync(descriptor),
  }
}

const NAME = 'symbolon.sock'
const PATH_BYTES_MAX = 100
