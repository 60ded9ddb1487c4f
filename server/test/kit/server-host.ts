/** Runs `symbolon serve` once for each message, with the environment in it, and marks the end of the output of each. */
import { keepMemoryOutOfCoreDumps } from '../../src/cli/core-dumps.ts'
import { runWords } from '../../src/cli/run-words.ts'
import { END_OF_OUTPUT } from './end-of-output.ts'

keepMemoryOutOfCoreDumps()
process.on('message', (variables: Readonly<Record<string, string>>) => void serve(variables))
process.on('disconnect', () => process.exit())

async function serve(variables: Readonly<Record<string, string>>): Promise<void> {
  for (const name of Object.keys(process.env)) delete process.env[name]
  Object.assign(process.env, variables)
  const status = await runWords(['serve'], {
    out: (line) => void process.stdout.write(`${line}\n`),
    err: (line) => void process.stderr.write(`${line}\n`),
  })
  for (const it of ['SIGTERM', 'SIGINT']) process.removeAllListeners(it)
  for (const it of [process.stdout, process.stderr]) it.write(`${END_OF_OUTPUT}${status}\n`)
}
