/**
 * Connects the operator's commands to the running service: a socket in the data folder, private to
 * the owner. A command sends one line of JSON; the service replies with lines of JSON until the
 * work is done.
 */
import { chmodSync, closeSync, existsSync, openSync, rmSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/** Runs a command; `report` sends its progress to the sender. */
export type Listener = (order: unknown, report: (news: object) => void) => Promise<void>

interface LastWord {
  readonly done: boolean
  /** The reason why it failed. */
  readonly reason?: string
}

/** Accepts commands until closed. Only the holder of the data folder may call this. */
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
 * Sends a command to the service on `folder`. Returns false if no service runs there; throws if the
 * command fails, or if the service stops meanwhile.
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

/**
 * Finds out whether a service listens on the socket in `folder`, without sending it anything. Resolves with `absent` if there
 * is no socket, with `abandoned` if no process listens on it.
 */
export async function findListener(folder: string): Promise<'listening' | 'abandoned' | 'absent'> {
  if (!existsSync(join(folder, NAME))) return 'absent'
  const path = socketPathIn(folder)
  const socket = connect(path.text)
  const { promise, resolve } = Promise.withResolvers<'listening' | 'abandoned' | 'absent'>()
  socket.once('connect', () => resolve('listening'))
  socket.once('error', ({ code }: NodeJS.ErrnoException) => {
    // A service with a full backlog, or of another user, still listens.
    if (code === 'ENOENT') resolve('absent')
    else resolve(code === 'ECONNREFUSED' ? 'abandoned' : 'listening')
  })
  try {
    return await promise
  } finally {
    socket.destroy()
    path.close()
  }
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
 * Returns a path that is short enough for a socket, and a function to call after use.
 *
 * The kernel would truncate a longer path; an open folder has a short name as well. Source:
 * unix(7), sun_path.
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
