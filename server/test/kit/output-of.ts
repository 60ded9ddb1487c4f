import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import type { Readable } from 'node:stream'

/**
 * Resolves with the next piece of what a program writes. Rejects, with how the program ended, if it closes its output
 * instead: otherwise a test of a program that dies at its start would wait for ever.
 */
export async function nextOutput(
  child: ChildProcess & { readonly stdout: Readable },
): Promise<Buffer> {
  const over = new AbortController()
  const { signal } = over
  const failed = Promise.all([
    // Rejects if the program cannot be started.
    child.stdout.closed ? null : once(child.stdout, 'close', { signal }),
    child.exitCode ?? child.signalCode ?? once(child, 'exit', { signal }),
  ]).then(() => {
    throw new Error(`The program wrote nothing more (${child.signalCode ?? child.exitCode})`)
  })
  try {
    const [chunk] = await Promise.race([once(child.stdout, 'data', { signal }), failed])
    return chunk as Buffer
  } finally {
    over.abort()
    failed.catch(() => {})
  }
}
