import { createServer, type Server } from 'node:net'

/** Each connection closes 0, 1, 2 or this many milliseconds after an answer. */
const CLOSES_WITHIN_MS = 3

/** Answers 200 with `Accepted`, the number of connections so far, and closes CLOSES_WITHIN_MS later at most. */
export function closingDestination(): Server {
  let accepted = 0
  return createServer((socket) => {
    accepted += 1
    const delayMs = accepted % (CLOSES_WITHIN_MS + 1)
    let text = ''
    let closing: NodeJS.Timeout | undefined
    socket.on('error', () => socket.destroy())
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1')
      const length = wholeLength(text)
      if (length === null || text.length < length) return
      text = text.slice(length)
      clearTimeout(closing)
      socket.write(`HTTP/1.1 200 OK\r\nAccepted: ${accepted}\r\nContent-Length: 0\r\n\r\n`)
      if (delayMs === 0) socket.end()
      else closing = setTimeout(() => socket.end(), delayMs)
    })
  })
}

/** Bytes of the whole request, or null while its header section is incomplete. */
function wholeLength(text: string): number | null {
  const end = text.indexOf('\r\n\r\n')
  if (end < 0) return null
  return end + 4 + Number(/\r\ncontent-length: (\d+)/i.exec(text.slice(0, end))?.[1] ?? 0)
}
