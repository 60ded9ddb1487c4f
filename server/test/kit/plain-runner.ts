import { createContext, runInContext } from 'node:vm'
import type { Json } from '../../src/base/json.ts'
import type { ReactorOutcome } from '../../src/ports/reactor-runner.ts'
import { returned, threw, type Ran } from './still-runner.ts'

/** Runs code written by the tests themselves without any sandbox, as the behaviour of a still runner. */
export async function runPlainly(
  { code, args, configuration }: Ran,
  bt: unknown = null,
): Promise<ReactorOutcome> {
  const module: { exports: unknown } = { exports: undefined }
  try {
    runInContext(code, createContext({ module }))
  } catch (error) {
    return { kind: 'no-function', message: (error as Error).message, position: null }
  }
  if (typeof module.exports !== 'function') {
    return { kind: 'no-function', message: 'The code exports no function.', position: null }
  }
  try {
    const result = (await module.exports({ args, configuration, bt })) as Json | undefined
    return returned(result ?? null)
  } catch (error) {
    const {
      name,
      message,
      status = null,
      errors = null,
    } = error as Error & {
      status?: Json
      errors?: Json
    }
    return threw({ name, message, status, errors })
  }
}
