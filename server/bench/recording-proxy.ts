/**
 * A proxy that writes down that it sends something before it does, and nothing else: what a vault that keeps an audit log
 * cannot beat.
 *
 * It goes by what the vault goes by, with as little around it as works: a thread with SQLite and shared commits,
 * undici towards the destination. It knows no keys, no tokens and no rules.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { Worker } from 'node:worker_threads'
import { Pool } from 'undici'

/** Forwards everything to a port of this machine. */
export async function recordingProxy(port: number, folder: string): Promise<Server> {
  const auditLog = await startAuditLog(`${folder}/audit-log.db`)
  const pool = new Pool(`http://127.0.0.1:${port}`, { pipelining: 1 })
  return createServer((asked, answer) => {
    const chunks: Buffer[] = []
    asked.on('data', (chunk: Buffer) => chunks.push(chunk))
    asked.on('end', () =>
      auditLog(() => forwardRequest(pool, asked, Buffer.concat(chunks), answer)),
    )
  })
}

function forwardRequest(
  pool: Pool,
  { method = 'GET', url = '/', headers }: IncomingMessage,
  body: Buffer,
  answer: ServerResponse,
): void {
  const asked = { method, path: url, headers: { 'content-type': headers['content-type'] }, body }
  pool.dispatch(asked, {
    onRequestStart: () => {},
    onResponseStart: (_controller, status, headerSection) =>
      void answer.writeHead(status, headerSection),
    onResponseData: (_controller, chunk) => void answer.write(chunk),
    onResponseEnd: () => void answer.end(),
    onResponseError: () => void answer.destroy(),
  })
}

/** Returns who calls back when there is an event on the disk; one flush is shared by all that wait. */
async function startAuditLog(path: string): Promise<(done: () => void) => void> {
  const writer = new Worker(new URL('./bare-writer.ts', import.meta.url), { workerData: path })
  await once(writer, 'message')
  let waiting: (() => void)[] = []
  let sent: readonly (() => void)[] | null = null
  let flushing = false
  writer.on('message', () => {
    const done = sent ?? []
    sent = null
    for (const it of done) it()
    flushSoon()
  })
  return (done) => {
    waiting.push(done)
    flushSoon()
  }

  function flushSoon(): void {
    if (sent !== null || flushing || waiting.length === 0) return
    flushing = true
    setImmediate(() => {
      flushing = false
      sent = waiting
      waiting = []
      writer.postMessage(sent.length)
    })
  }
}
