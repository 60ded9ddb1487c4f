/** Runs the commands that runSymbolon() hands over, each with the environment that it is given. */
import { parentPort } from 'node:worker_threads'
import { runWords } from '../../src/cli/run-words.ts'
import type { Finished } from './running-vault.ts'

interface CommandRequest {
  readonly args: readonly string[]
  readonly variables: Readonly<Record<string, string>>
}

parentPort!.on('message', (request: CommandRequest) => void run(request))

async function run({ args, variables }: CommandRequest): Promise<void> {
  for (const name of Object.keys(process.env)) delete process.env[name]
  Object.assign(process.env, variables)
  let [out, err] = ['', '']
  const status = await runWords(args, {
    out: (line) => void (out += `${line}\n`),
    err: (line) => void (err += `${line}\n`),
  })
  parentPort!.postMessage({ status, out, err } satisfies Finished)
}
