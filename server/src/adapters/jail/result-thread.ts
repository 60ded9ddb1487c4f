/** The thread that reads long results of reactors, one after another. */
import { parentPort } from 'node:worker_threads'
import { readResult } from './read-result.ts'

const port = parentPort!

port.on('message', (bytes: Uint8Array) => {
  const result = readResult(bytes)
  if (typeof result === 'string') port.postMessage(result)
  else {
    // Small buffers come from a pool, which cannot be transferred.
    const json = Uint8Array.from(result.json)
    port.postMessage({ ...result, json }, [json.buffer])
  }
})
