/** A pooler between clients and PostgreSQL, as PgBouncer is in transaction mode, and as far from keeping a session as it may be. */
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { messageOf, Messages, textsIn, type ProtocolMessage } from './protocol-messages.ts'
import { makeSocketFolder } from './socket-folder.ts'

export interface PoolingProxy {
  /** Like `url`, but through this proxy. */
  readonly url: string
  /** How often a client was given another session of the database than it had before. */
  readonly switches: number
  /** Replaces every session by one of the server at `url`, and keeps the clients. No transaction may be open. */
  readonly moveTo: (url: string) => Promise<void>
  readonly close: () => Promise<void>
}

interface PoolingOptions {
  /** Sent when each session of the database begins. Those of clients are dropped. */
  readonly startupParameters?: Readonly<Record<string, string>>
  /** Whether a client's named statements are prepared in each session that it is given. Default: true. */
  readonly tracksNames?: boolean
}

/** A session of the database. */
interface PooledSession {
  readonly socket: Socket
  readonly prepared: Set<string>
  /** Called with each message of the database. */
  heed: (message: ProtocolMessage) => void
  /** Called when the database has ended the session. */
  lost: () => void
}

/** All messages of a client up to one that asks for a response. */
type ClientRequest = readonly ProtocolMessage[]

const SESSIONS = 3

/** `T` and `E` are in a transaction. */
const IDLE = 'I'

/**
 * Starts the pooler. A session serves a client for one transaction; a statement outside any is one. Sessions take turns, so the
 * next transaction of a client has another session, if that is free. The client's named statements are prepared in each.
 */
export async function poolingProxy(
  url: string,
  { startupParameters = {}, tracksNames = true }: PoolingOptions = {},
): Promise<PoolingProxy> {
  const address = new URL(url)
  let target = socketOf(url)
  const folder = makeSocketFolder('symbolon-pooler-')
  const sockets = new Set<Socket>()
  const keep = (socket: Socket): Socket => {
    sockets.add(socket)
    return socket.on('error', () => {})
  }
  const startup = { user: address.username, database: address.pathname.slice(1) }
  const pool = new SessionPool(() => keep(connect(target)), { ...startup, ...startupParameters })
  await pool.fill()
  const counts = { switches: 0 }
  const server = createServer((client) => serveClient(keep(client), pool, { counts, tracksNames }))
  server.listen(join(folder, '.s.PGSQL.5432'))
  await once(server, 'listening')
  address.searchParams.set('host', folder)
  return {
    url: address.href,
    get switches() {
      return counts.switches
    },
    moveTo: async (other) => {
      target = socketOf(other)
      await pool.refill()
    },
    close: async () => {
      for (const it of sockets) it.destroy()
      server.close()
      await once(server, 'close')
      rmSync(folder, { recursive: true })
    },
  }
}

function socketOf(url: string): string {
  return join(new URL(url).searchParams.get('host')!, '.s.PGSQL.5432')
}

/** The sessions that no client has. */
class SessionPool {
  readonly #connect: () => Socket
  readonly #parameters: Readonly<Record<string, string>>
  readonly #free: PooledSession[] = []
  readonly #waiting: ((session: PooledSession) => void)[] = []

  constructor(connectDatabase: () => Socket, parameters: Readonly<Record<string, string>>) {
    this.#connect = connectDatabase
    this.#parameters = parameters
  }

  async fill(): Promise<void> {
    for (let n = 0; n < SESSIONS; n++) this.give(await this.#begin())
  }

  /** Replaces the free sessions. */
  async refill(): Promise<void> {
    for (const it of this.#free.splice(0)) {
      it.lost = () => {}
      it.socket.destroy()
    }
    await this.fill()
  }

  /** Calls `take` with the session that has been free for longest. */
  take(take: (session: PooledSession) => void): void {
    this.#waiting.push(take)
    this.#match()
  }

  give(session: PooledSession): void {
    session.lost = () => void this.#free.splice(this.#free.indexOf(session), 1)
    this.#free.push(session)
    this.#match()
  }

  #match(): void {
    while (this.#free.length > 0 && this.#waiting.length > 0) {
      this.#waiting.shift()!(this.#free.shift()!)
    }
  }

  async #begin(): Promise<PooledSession> {
    const socket = this.#connect()
    const ready = Promise.withResolvers<void>()
    const session: PooledSession = {
      socket,
      prepared: new Set(),
      heed: ({ type, body }) => {
        if (type === 'Z') ready.resolve()
        if (type === 'E') ready.reject(new Error(textsIn(body).join(' ')))
      },
      lost: () => ready.reject(new Error('The database ended the session')),
    }
    const messages = new Messages(false)
    socket.on('data', (bytes: Buffer) => {
      for (const it of messages.read(bytes)) session.heed(it)
    })
    socket.on('close', () => session.lost())
    const fields = Object.entries(this.#parameters).flatMap(([name, value]) => [
      `${name}\0`,
      `${value}\0`,
    ])
    socket.write(messageOf('', VERSION, ...fields, '\0'))
    await ready.promise
    return session
  }
}

/** Of the protocol: 3.0. */
const VERSION = Buffer.from([0, 3, 0, 0])

interface ClientService {
  readonly counts: { switches: number }
  readonly tracksNames: boolean
}

/** Answers the start of a client, and then sends one request after another to the session it is given. */
function serveClient(
  client: Socket,
  pool: SessionPool,
  { counts, tracksNames }: ClientService,
): void {
  const messages = new Messages(true)
  const statements = new Map<string, Buffer>()
  const requests: ClientRequest[] = []
  let received: ProtocolMessage[] = []
  let session: PooledSession | null = null
  let last: PooledSession | null = null
  let busy = false

  client.on('data', (bytes: Buffer) => {
    for (const it of messages.read(bytes)) {
      if (it.type === '') {
        client.write(WELCOME)
        continue
      }
      if (it.type === 'X') continue
      received.push(it)
      if (it.type !== 'Q' && it.type !== 'S') continue
      requests.push(received)
      received = []
    }
    next()
  })
  client.on('end', () => client.end())
  client.on('close', () => {
    requests.length = 0
    if (session !== null && !busy) rollBack(session)
  })

  function next(): void {
    if (busy || requests.length === 0) return
    busy = true
    if (session !== null) send(session)
    else pool.take(send)
  }

  function send(taken: PooledSession): void {
    const request = requests.shift()
    // The client is gone.
    if (request === undefined) return pool.give(taken)
    if (last !== null && last !== taken) counts.switches++
    session = last = taken
    const sent = tracksNames ? prepared(request, taken, statements) : untracked(request)
    const hidden = [...sent.hidden]
    taken.lost = () => client.destroy()
    taken.heed = (message) => {
      if (message.type === hidden[0]) {
        hidden.shift()
        return
      }
      client.write(message.whole)
      if (message.type !== 'Z') return
      busy = false
      if (message.body.toString('latin1') === IDLE) {
        session = null
        pool.give(taken)
      } else if (client.destroyed) rollBack(taken)
      next()
    }
    taken.socket.write(sent.bytes)
  }

  /** Ends the transaction of a client that is gone. */
  function rollBack(taken: PooledSession): void {
    session = null
    taken.lost = () => {}
    taken.heed = ({ type }) => {
      if (type === 'Z') pool.give(taken)
    }
    taken.socket.write(messageOf('Q', 'ROLLBACK\0'))
  }
}

/** Authentication is done, the encoding is UTF-8, an earlier server was no standby, and no transaction is open. */
const WELCOME = Buffer.concat([
  messageOf('R', Buffer.alloc(4)),
  messageOf('S', 'client_encoding\0UTF8\0'),
  messageOf('S', 'in_hot_standby\0off\0'),
  messageOf('Z', IDLE),
])

/** What is sent to the database for a request, and the types of the responses that the client must not get. */
interface PooledRequest {
  readonly bytes: Buffer
  readonly hidden: readonly string[]
}

function untracked(request: ClientRequest): PooledRequest {
  return { bytes: Buffer.concat(request.map((it) => it.whole)), hidden: [] }
}

/**
 * Returns the bytes of a request, which begin with whatever makes its named statement the one of `session`, and the types of the
 * responses to that.
 */
function prepared(
  request: ClientRequest,
  session: PooledSession,
  statements: Map<string, Buffer>,
): PooledRequest {
  const before: Buffer[] = []
  const hidden: string[] = []
  for (const { type, body, whole } of request) {
    const name = type === 'P' ? textsIn(body)[0] : type === 'B' ? textsIn(body)[1]! : ''
    if (name === '') continue
    if (type === 'P') statements.set(name, whole)
    if (type === 'P' && session.prepared.has(name)) {
      before.push(messageOf('C', `S${name}\0`))
      hidden.push('3')
    }
    if (type === 'B' && !session.prepared.has(name)) {
      before.push(statements.get(name)!)
      hidden.push('1')
    }
    session.prepared.add(name)
  }
  return { bytes: Buffer.concat([...before, ...request.map((it) => it.whole)]), hidden }
}
