import { ConfigError } from '../config.ts'

/** How a file named by a flag is used. */
type Purpose = 'read' | 'written'

/**
 * Returns a handler that turns a system error about the file of a flag into a ConfigError naming both.
 *
 * Rethrows any other error.
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
