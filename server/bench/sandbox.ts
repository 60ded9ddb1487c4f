/**
 * `npm run bench:sandbox --workspace server -- --against DIR`: what a run in the sandbox costs here and in another checkout,
 * in turns, `--rounds` of them (5 by default): in a process that has to be started, in a warm one, and with a result of 1 MiB.
 */
import { spawn } from 'node:child_process'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import { median, renderMachine } from './table.ts'

interface SandboxFigures {
  readonly coldMs: number
  readonly warmMs: number
  readonly longMs: number
}

const { values } = parseArgs({
  options: { against: { type: 'string' }, rounds: { type: 'string', default: '5' } },
})
const HERE = resolve(import.meta.dirname, '../..')
const checkouts = [HERE, ...(values.against === undefined ? [] : [resolve(values.against)])]
const measured = checkouts.map((checkout) => ({ checkout, ...begin(checkout) }))
const found = measured.map((): SandboxFigures[] => [])

process.stdout.write(`${renderMachine()}\n`)
for (let round = 0; round <= Number(values.rounds); round++) {
  for (const [n, { measure }] of measured.entries()) {
    const figures = await measure()
    // The first round is for the compilers.
    if (round > 0) found[n]!.push(figures)
  }
}
for (const [n, { checkout, end }] of measured.entries()) {
  end()
  const of = (name: keyof SandboxFigures): string => {
    const all = found[n]!.map((it) => it[name]).toSorted((a, b) => a - b)
    return `${median(all).toFixed(2)} (${all[0]!.toFixed(2)} to ${all.at(-1)!.toFixed(2)})`
  }
  process.stdout.write(
    `${checkout}, ms: cold ${of('coldMs')}, warm ${of('warmMs')}, 1 MiB ${of('longMs')}\n`,
  )
}

/** Starts the probe of a checkout. */
function begin(checkout: string): { measure: () => Promise<SandboxFigures>; end: () => void } {
  const probe = `${import.meta.dirname}/sandbox.probe.ts`
  const child = spawn(process.execPath, [probe, checkout], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  return {
    measure: async () => {
      child.stdin.write('\n')
      const { value, done } = await lines.next()
      if (done === true) throw new Error(`The probe of ${checkout} has ended`)
      return JSON.parse(value) as SandboxFigures
    },
    end: () => void child.stdin.end(),
  }
}
