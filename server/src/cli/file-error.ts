import { ConfigError } from '../config.ts'

/** What a file is named for. */
type Purpose = 'read' | 'written'

/**
 * Returns a handler of what the system says against a file that a flag names: it throws that in a sentence, with both.
 *
 * Anything else is thrown as it is.
 */
export function fileError(flag: string, file: string, purpose: Purpose): (error: unknown) => never {
  return (error) => {
    const code = (error as NodeJS.ErrnoException).code
    if (code === undefined) throw error
    const what =
      code === 'EEXIST' ? 'is there: nothing is written over' : `cannot be ${purpose} (${code})`
    throw new ConfigError(`--${flag} is '${file}', which ${what}.`)
  }
}
