/** One thing the `symbolon` program can be told to do. */
export interface Command {
  readonly name: string
  /** One line for `symbolon help`. */
  readonly about: string
  /** Flags besides those of the settings, with what they take; `boolean` takes nothing. */
  readonly flags: Readonly<Record<string, 'string' | 'boolean'>>
  /** Whether it takes words that are no flags, such as names of files. */
  readonly takesWords?: true
  readonly load: () => Promise<RunCommand>
}

/** Does it, and resolves with the exit status once there is nothing left to do. */
export type RunCommand = (input: CommandInput) => Promise<number>

export interface CommandInput {
  /** Every flag given, without dashes; a boolean one holds an empty string. */
  readonly flags: Readonly<Record<string, string | undefined>>
  /** What else was given. */
  readonly words: readonly string[]
  readonly out: (line: string) => void
  readonly err: (line: string) => void
}
