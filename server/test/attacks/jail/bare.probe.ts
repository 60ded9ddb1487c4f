/** Runs an attack without walls, then the code that looks for its traces. Prints the results. */
import { createRequire } from 'node:module'
import { compileFunction, constants } from 'node:vm'

const [code = '', args = '{}', next = ''] = process.argv.slice(2)
const require = createRequire(import.meta.url)

let result = await run(code)
if (next !== '') result = await run(next)
process.stdout.write(`${JSON.stringify({ result })}\n`)
process.exit()

async function run(body: string): Promise<unknown> {
  const attack = compileFunction(`return (async ({ args }) => { ${body} })`, ['require'], {
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  })(require)
  return await attack({ args: JSON.parse(args) })
}
