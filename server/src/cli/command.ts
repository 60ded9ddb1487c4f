/** A command of the `symbolon` program. */
export interface Command {
  readonly name: string
  /** One line for `symbolon help`. */
  readonly about: string
  /** Flags besides those of the settings, with the type of their value; `boolean` takes none, and a `list` can be repeated. */
  readonly flags: Readonly<Record<string, 'string' | 'boolean' | 'list'>>
  /** Whether it takes positional arguments, such as file names. */
  readonly takesWords?: true
  readonly load: () => Promise<RunCommand>
}

/** Runs the command; resolves with the exit status once it is finished. */
export type RunCommand = (input: CommandInput) => Promise<number>

export interface CommandInput {
  /** Every flag given, without dashes; a boolean flag holds an empty string, and a list its values with commas between. */
  readonly flags: Readonly<Record<string, string | undefined>>
  /** The positional arguments. */
  readonly words: readonly string[]
  readonly out: (line: string) => void
  readonly err: (line: string) => void
}
