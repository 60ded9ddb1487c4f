import { diskFaultOf } from '../base/disk-fault.ts'
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
    const reason = diskFaultOf(error)
    const what =
      code === 'EEXIST'
        ? 'already exists and is not overwritten'
        : `cannot be ${purpose}${reason === null ? '' : `: ${reason}`} (${code})`
    throw new ConfigError(`--${flag} is '${file}', which ${what}.`)
  }
}

/**
 * Returns a handler that turns a system error about a file of ours into one that names it and the cause, since the system names
 * no file when a write fails. Rethrows any other error.
 */
export function writeError(file: string): (error: unknown) => never {
  return (cause) => {
    const reason = diskFaultOf(cause)
    throw reason === null ? cause : new Error(`Cannot write ${file}: ${reason}`, { cause })
  }
}
