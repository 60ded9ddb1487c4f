/** The scripts and style sheets of card fields, as browsers load them. */

/** Where the builds are: the one to mount, and all that pages may still name. */
export interface FieldBuilds {
  /** Returns the name of the current build, or null if there is none. */
  readonly current: () => Promise<string | null>
  /** Returns a file of a build, or null. `build` and `file` may be anything. */
  readonly read: (build: string, file: string) => Promise<BuildFile | null>
}

export interface BuildFile {
  readonly content: Buffer
  readonly gzipped: Buffer
}

/** A vault without card fields. */
export const NO_FIELD_BUILDS: FieldBuilds = { current: async () => null, read: async () => null }

/** The files of a build that are served, with their types. */
export const BUILD_FILES: Readonly<Record<string, string>> = {
  'fields.js': 'text/javascript; charset=utf-8',
  'frame.js': 'text/javascript; charset=utf-8',
  'frame.css': 'text/css; charset=utf-8',
}
