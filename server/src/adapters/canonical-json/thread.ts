/** The thread that canonicalizes texts, one after another. */
import { parentPort } from 'node:worker_threads'
import { canonical } from './canonical.ts'

const port = parentPort!

port.on('message', (text: string) => {
  const rendered = canonical(text)
  port.postMessage(rendered, [rendered.buffer])
})
