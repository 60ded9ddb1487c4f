/** Runs attacks without walls, one after another, from a list on the standard input. Prints each result as a line. */
import { readFileSync, writeSync } from 'node:fs'
import { createRequire } from 'node:module'
import { compileFunction, constants } from 'node:vm'

const args = process.argv[2]!
const require = createRequire(import.meta.url)

for (const code of JSON.parse(readFileSync(0, 'utf8')) as string[]) {
  const result: unknown = await run(code).catch(() => null)
  writeSync(1, `${JSON.stringify({ result })}\n`)
}
process.exit()

async function run(body: string): Promise<unknown> {
  const attack = compileFunction(`return (async ({ args }) => { ${body} })`, ['require'], {
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  })(require)
  return await attack({ args: JSON.parse(args) })
}
