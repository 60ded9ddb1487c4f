/** A proxy between a client and PostgreSQL that simulates network and database failures. */
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { Messages, textsIn, type ProtocolMessage } from './protocol-messages.ts'
import { makeSocketFolder } from './socket-folder.ts'

/** The fate of a request: all messages up to one that asks for a response. */
export type Fate =
  | 'pass'
  /** The connection is lost before the database receives the request. */
  | 'lose'
  /** The database receives the request; its response and the connection are lost. */
  | 'lose-answer'
  /** The database receives it, responds, and ends the connection at once, as if an operator restarted it. */
  | 'end'
  /** The database receives it, and its response ends with the report that the server is a standby. */
  | 'demote'
  /** The database receives it, and never responds. */
  | 'swallow'
  /** The proxy responds as if the database had refused it with this code. */
  | { readonly code: string }

export interface MeddlingProxy {
  /** Like `url`, but through this proxy. */
  readonly url: string
  /** Called with the statement of each request; empty if it has none. */
  decide: (statement: string) => Fate
  /** Whether the client does not get the server's reports about being a standby, as through a pooler. */
  hidesStandby: boolean
  /** Leads new connections to the server at `url`, and leaves the others where they are. */
  readonly switchTo: (url: string) => void
  readonly close: () => Promise<void>
}

export async function meddlingProxy(url: string): Promise<MeddlingProxy> {
  const address = new URL(url)
  let target = socketOf(url)
  const folder = makeSocketFolder('symbolon-proxy-')
  const sockets = new Set<Socket>()
  address.searchParams.set('host', folder)
  const proxy: MeddlingProxy = {
    url: address.href,
    decide: () => 'pass',
    hidesStandby: false,
    switchTo: (other) => {
      target = socketOf(other)
    },
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
    meddle(client, database, proxy)
  })
  server.listen(join(folder, '.s.PGSQL.5432'))
  await once(server, 'listening')
  return proxy
}

function socketOf(url: string): string {
  return join(new URL(url).searchParams.get('host')!, '.s.PGSQL.5432')
}

/**
 * Proxies one connection. A refused request is not forwarded, and neither is anything after it until the transaction is
 * rolled back, as the database would refuse it; responses come in the order of the requests.
 */
function meddle(client: Socket, database: Socket, proxy: MeddlingProxy): void {
  let fate: Fate = 'pass'
  let refused = false
  /** Requests the database has not answered yet, and refusals to send after them. */
  let unanswered = 0
  let refusals: Buffer[] = []
  let request: Buffer[] = []
  let statement = ''
  const prepared = new Map<string, string>()
  const fromClient = new Messages(true)
  const fromDatabase = new Messages(false)

  client.on('data', (bytes: Buffer) => {
    for (const { type, body, whole } of fromClient.read(bytes)) {
      request.push(whole)
      if (type === 'Q') [statement] = textsIn(body)
      if (type === 'P') {
        const [name, text] = textsIn(body)
        prepared.set(name, (statement = text!))
      }
      if (type === 'B' && statement === '') statement = prepared.get(textsIn(body)[1]!) ?? ''
      if (type === 'Q' || type === 'S' || type === '' || type === 'X' || type === 'p') flush()
    }
  })

  database.on('data', (received: Buffer) => {
    const messages = fromDatabase.read(received)
    for (const { type } of messages) if (type === 'Z') unanswered--
    const bytes = proxy.hidesStandby ? withoutReports(messages) : received
    // Earlier requests may still be answered.
    const last = unanswered === 0
    if (fate === 'lose-answer' && last) client.destroy()
    else if (fate === 'end' && last)
      client.end(Buffer.concat([bytes, errorResponse('FATAL', '57P01')]))
    else if (fate === 'demote' && last) client.write(demoted(bytes))
    else if (fate !== 'swallow' && fate !== 'lose-answer') client.write(bytes)
    sendRefusals()
  })

  function flush(): void {
    const whole = Buffer.concat(request)
    if (fate === 'pass' || typeof fate === 'object') fate = proxy.decide(statement)
    refused &&= statement !== 'ROLLBACK'
    const code = refused ? IN_FAILED_TRANSACTION : typeof fate === 'object' ? fate.code : null
    request = []
    statement = ''
    if (fate === 'lose') client.destroy()
    else if (code !== null) {
      refused = true
      refusals.push(refusal(code))
      sendRefusals()
    } else {
      unanswered++
      database.write(whole)
    }
  }

  function sendRefusals(): void {
    if (unanswered > 0) return
    for (const it of refusals) client.write(it)
    refusals = []
  }
}

/** Applies `fate` to the first `times` requests that match `which`; returns a counter of them. */
export function spoil(
  proxy: MeddlingProxy,
  which: RegExp,
  fate: Fate,
  times = 1,
): { readonly met: number } {
  const count = { met: 0 }
  proxy.decide = (statement) => {
    if (!which.test(statement) || count.met >= times) return 'pass'
    count.met++
    return fate
  }
  return count
}

const IN_FAILED_TRANSACTION = '25P02'

/** Returns the messages without ParameterStatus of `in_hot_standby`. */
function withoutReports(messages: readonly ProtocolMessage[]): Buffer {
  const others = messages.filter(
    ({ type, body }) => type !== 'S' || textsIn(body)[0] !== 'in_hot_standby',
  )
  return Buffer.concat(others.map((it) => it.whole))
}

/** Returns a response with the report before its ReadyForQuery, as the server sends it: every row has arrived by then. */
function demoted(response: Buffer): Buffer {
  const fields = Buffer.from('in_hot_standby\0on\0')
  const head = Buffer.alloc(5)
  head.write('S')
  head.writeUInt32BE(fields.length + 4, 1)
  const end = response.length - READY_BYTES
  return Buffer.concat([response.subarray(0, end), head, fields, response.subarray(end)])
}

const READY_BYTES = 6

/** Returns an ErrorResponse, and ReadyForQuery for a failed transaction. */
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
