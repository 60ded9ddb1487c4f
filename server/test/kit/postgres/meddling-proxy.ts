/** Stands between a client and PostgreSQL, and does what networks and databases do on bad days. */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** What becomes of a request: of all messages up to one that asks for an answer. */
export type Fate =
  | 'pass'
  /** The connection is lost before the database hears of it. */
  | 'lose'
  /** The database hears of it; its answer is lost, and the connection. */
  | 'lose-answer'
  /** It hears of it and answers, and at once ends the connection: an operator restarts it, say. */
  | 'end'
  /** It hears of it, and nobody hears of it again. */
  | 'swallow'
  /** The database is said to have refused it, with this code. */
  | { readonly code: string }

export interface MeddlingProxy {
  /** As `url`, but through here. */
  readonly url: string
  /** Asked about each request, with its statement; empty for what has none. */
  decide: (statement: string) => Fate
  readonly close: () => Promise<void>
}

export async function meddlingProxy(url: string): Promise<MeddlingProxy> {
  const address = new URL(url)
  const target = join(address.searchParams.get('host')!, '.s.PGSQL.5432')
  const folder = mkdtempSync(join(tmpdir(), 'symbolon-proxy-'))
  const sockets = new Set<Socket>()
  address.searchParams.set('host', folder)
  const proxy: MeddlingProxy = {
    url: address.href,
    decide: () => 'pass',
    close: async () => {
      for (const it of sockets) it.destroy()
      server.close()
      await once(server, 'close')
      rmSync(folder, { recursive: true })
    },
  }
  const server = createServer((client) => {
    const database = connect(target)
    for (const it of [client, database]) {
      sockets.add(it)
      it.on('error', () => {})
      it.on('close', () => {
        sockets.delete(it)
        client.destroy()
        database.destroy()
      })
    }
    meddle(client, database, (statement) => proxy.decide(statement))
  })
  server.listen(join(folder, '.s.PGSQL.5432'))
  await once(server, 'listening')
  return proxy
}

function meddle(client: Socket, database: Socket, decide: (statement: string) => Fate): void {
  let begun = false
  let fate: Fate = 'pass'
  let rest: Buffer = Buffer.alloc(0)
  let request: Buffer[] = []
  let statement = ''

  client.on('data', (bytes: Buffer) => {
    rest = Buffer.concat([rest, bytes])
    for (let message = next(); message !== null; message = next()) {
      const type = begun ? String.fromCharCode(message[0]!) : ''
      begun = true
      request.push(message)
      if (type === 'Q') statement = message.toString('utf8', 5, message.length - 1)
      if (type === 'P') statement = message.toString('utf8', 6).split('\0')[0]!
      if (type === 'Q' || type === 'S' || type === '' || type === 'X' || type === 'p') flush()
    }
  })

  database.on('data', (bytes: Buffer) => {
    if (fate === 'lose-answer') client.destroy()
    else if (fate === 'end') client.end(Buffer.concat([bytes, errorResponse('FATAL', '57P01')]))
    else if (fate !== 'swallow') client.write(bytes)
  })

  /** The first message has no type, only its length. */
  function next(): Buffer | null {
    const head = begun ? 1 : 0
    if (rest.length < head + 4) return null
    const end = head + rest.readUInt32BE(head)
    if (rest.length < end) return null
    const message = rest.subarray(0, end)
    rest = rest.subarray(end)
    return message
  }

  function flush(): void {
    const whole = Buffer.concat(request)
    if (fate === 'pass' || typeof fate === 'object') fate = decide(statement)
    request = []
    statement = ''
    if (fate === 'lose') client.destroy()
    else if (typeof fate === 'object') client.write(refusal(fate.code))
    else database.write(whole)
  }
}

/** An ErrorResponse, and ReadyForQuery in a transaction that failed. */
function refusal(code: string): Buffer {
  return Buffer.concat([errorResponse('ERROR', code), Buffer.from([0x5a, 0, 0, 0, 5, 0x45])])
}

function errorResponse(severity: 'ERROR' | 'FATAL', code: string): Buffer {
  const fields = Buffer.from(`S${severity}\0V${severity}\0C${code}\0Minjected\0\0`)
  const head = Buffer.alloc(5)
  head.write('E')
  head.writeUInt32BE(fields.length + 4, 1)
  return Buffer.concat([head, fields])
}
