/** Stands between a server and PostgreSQL, on the loopback, and cuts a connection at a byte of a transaction. */
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { join } from 'node:path'

/** A byte of a transaction: those before it pass, it and what follows do not. */
export interface CutPoint {
  /** Whose bytes are counted: the server's, or the database's. */
  readonly side: ProxySide
  /** The statement whose first byte counting starts at, or whose answer, followed by those to later statements. */
  readonly from: CutStatement
  readonly bytes: number
  /** Whether the server sees a reset, as of a broken connection, or an end, as of a closed one. */
  readonly reset: boolean
}

export type ProxySide = 'asked' | 'answered'
/** `COMMIT` begins with the statements that it is sent along with. */
export type CutStatement = 'BEGIN' | 'COMMIT'

/** How many bytes go each way. */
export type Lengths = Record<ProxySide, number>

/** A cut that was made. */
export interface Cut {
  /** Whether the server had begun to ask to commit. */
  readonly asked: boolean
}

export class CuttingProxy {
  readonly #server: Server
  readonly #target: string
  readonly #sockets = new Set<Socket>()
  /** Of the last transaction that was let through: up to COMMIT, and from there on. */
  readonly last: Record<CutStatement, Lengths> = {
    BEGIN: { asked: 0, answered: 0 },
    COMMIT: { asked: 0, answered: 0 },
  }
  #armed: Armed | null = null

  private constructor(url: URL) {
    this.#target = join(url.searchParams.get('host')!, '.s.PGSQL.5432')
    this.#server = createServer((client) => this.#serve(client))
  }

  /** Opens one in front of the database at `url`, which names a folder with a socket; returns its own address too. */
  static async open(url: string): Promise<{ proxy: CuttingProxy; url: string }> {
    const address = new URL(url)
    const proxy = new CuttingProxy(address)
    proxy.#server.listen(0, '127.0.0.1')
    await once(proxy.#server, 'listening')
    const { port } = proxy.#server.address() as AddressInfo
    const own = `postgres://${address.username}@127.0.0.1:${port}${address.pathname}`
    return { proxy, url: own }
  }

  /** Cuts the connection of the next transaction that begins; resolves when that is done. */
  cut(point: CutPoint): Promise<Cut> {
    const { promise, resolve } = Promise.withResolvers<Cut>()
    this.#armed = { point, cut: resolve }
    return promise
  }

  async close(): Promise<void> {
    for (const it of this.#sockets) it.destroy()
    this.#server.close()
    await once(this.#server, 'close')
  }

  #serve(client: Socket): void {
    const database = connect(this.#target)
    for (const it of [client, database]) {
      this.#sockets.add(it)
      it.setNoDelay()
      it.on('error', () => {})
      it.on('close', () => this.#sockets.delete(it))
    }
    client.on('close', () => database.destroy())
    // The database's last bytes must still arrive.
    database.on('close', () => client.destroySoon())
    const proxied = new ProxiedConnection(client, database, this.last, () => {
      const armed = this.#armed
      this.#armed = null
      return armed
    })
    client.on('data', (bytes: Buffer) => proxied.ask(bytes))
    database.on('data', (bytes: Buffer) => proxied.answer(bytes))
  }
}

/** A cut that is to be made, and whom to tell. */
interface Armed {
  readonly point: CutPoint
  readonly cut: (cut: Cut) => void
}

/** One connection. */
class ProxiedConnection {
  readonly #client: Socket
  readonly #database: Socket
  readonly #last: Record<CutStatement, Lengths>
  readonly #takeArmed: () => Armed | null
  #armed: Armed | null = null
  #rest: Buffer = Buffer.alloc(0)
  #begun = false
  #from: CutStatement | null = null
  #passed: Lengths = { asked: 0, answered: 0 }
  #cut = false

  constructor(
    client: Socket,
    database: Socket,
    last: Record<CutStatement, Lengths>,
    takeArmed: () => Armed | null,
  ) {
    this.#client = client
    this.#database = database
    this.#last = last
    this.#takeArmed = takeArmed
  }

  /** Takes what the server sends, message by message, since only whole ones say what they are. */
  ask(bytes: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, bytes])
    for (let message = this.#next(); message !== null && !this.#cut; message = this.#next()) {
      const statement = statementOf(message)
      if (statement !== null) this.#enter(statement)
      if (!this.#cut) this.#pass('asked', message)
    }
  }

  answer(bytes: Buffer): void {
    if (!this.#cut) this.#pass('answered', bytes)
  }

  #enter(statement: CutStatement): void {
    if (statement === 'COMMIT' && this.#from === 'COMMIT') return
    if (statement === 'BEGIN') this.#armed ??= this.#takeArmed()
    else this.#last.BEGIN = this.#passed
    // This transaction has fewer bytes than the one that was measured.
    if (statement === 'COMMIT' && this.#armed?.point.from === 'BEGIN') {
      this.#from = statement
      this.#sever('asked', Buffer.alloc(0))
      return
    }
    this.#from = statement
    this.#passed = { asked: 0, answered: 0 }
  }

  #pass(side: ProxySide, bytes: Buffer): void {
    const before = this.#passed[side]
    this.#passed[side] += bytes.length
    const point = this.#armed?.point
    if (point?.side === side && point.from === this.#from) {
      // One that was committed has come to its end with fewer bytes than the one that was measured.
      const over = this.#from === 'COMMIT' && side === 'answered' && bytes.subarray(-6).equals(IDLE)
      if (over || this.#passed[side] >= point.bytes) {
        this.#sever(side, bytes.subarray(0, point.bytes - before))
        return
      }
    }
    if (this.#from === 'COMMIT') this.#last.COMMIT = this.#passed
    const to = side === 'asked' ? this.#database : this.#client
    to.write(bytes)
  }

  /** Sends the last bytes that pass, and ends both sides without a word. */
  #sever(side: ProxySide, bytes: Buffer): void {
    this.#cut = true
    const { point, cut } = this.#armed!
    const end = (): void => {
      if (point.reset) this.#client.resetAndDestroy()
      else this.#client.end()
      this.#database.destroy()
      cut({ asked: this.#from === 'COMMIT' })
    }
    if (bytes.length === 0) end()
    else (side === 'asked' ? this.#database : this.#client).write(bytes, end)
  }

  /** The first message has no type, only its length. */
  #next(): Buffer | null {
    const head = this.#begun ? 1 : 0
    if (this.#rest.length < head + 4) return null
    const end = head + this.#rest.readUInt32BE(head)
    if (this.#rest.length < end) return null
    const message = this.#rest.subarray(0, end)
    this.#rest = this.#rest.subarray(end)
    this.#begun = true
    return message
  }
}

/** The database is ready, and no transaction is open. */
const IDLE = Buffer.from('Z\0\0\0\x05I', 'latin1')

/** By their first word, of their text or of their name. */
const STATEMENTS: ReadonlyMap<string, CutStatement> = new Map([
  ['BEGIN', 'BEGIN'],
  ['COMMIT', 'COMMIT'],
  ['insert-audit-events', 'COMMIT'],
])

function statementOf(message: Buffer): CutStatement | null {
  const type = message.toString('latin1', 0, 1)
  const [first = '', second = ''] = message.toString('latin1', 5).split('\0', 2)
  const said = type === 'Q' || type === 'P' ? first : type === 'B' ? second : ''
  return STATEMENTS.get(/^[\w-]*/.exec(said)![0]) ?? null
}
