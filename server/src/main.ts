/**
 * The `symbolon` program.
 */
import { keepMemoryOutOfCoreDumps } from './cli/core-dumps.ts'
import { runWords } from './cli/run-words.ts'

keepMemoryOutOfCoreDumps()
// Exits even if a client still holds a connection: `stop` promises that the process ends.
process.exit(await main(process.argv.slice(2)))

async function main(words: string[]): Promise<number> {
  const out = (line: string): void => void process.stdout.write(`${line}\n`)
  const err = (line: string): void => void process.stderr.write(`${line}\n`)
  return await runWords(words, { out, err }, onceUnheard(err))
}

/**
 * Returns a function that says whether output was lost: on a full disk, or in a pipe whose reader is gone. The loss is reported
 * as soon as it is noticed, and does not stop a server.
 */
function onceUnheard(err: (line: string) => void): () => boolean {
  let unheard = false
  // The reader of standard error is gone as well.
  process.stderr.on('error', () => {})
  process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => {
    if (!unheard) err(`symbolon: Cannot write to the standard output (${code})`)
    unheard = true
  })
  return () => unheard
}
