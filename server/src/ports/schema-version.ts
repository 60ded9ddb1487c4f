/** The versions of a database's tables: the number of migrations that made them. */

/** Throws if the database is newer than the program: an old program cannot know what it would break. */
export function refuseNewerSchema(version: number, known: number): void {
  if (version <= known) return
  throw new Error(
    `Cannot open the database: it is at version ${version}, this program knows ${known}; ` +
      'start the newer program again',
  )
}

/** Throws unless the database is at the program's version. For callers that must not migrate it. */
export function requireSchema(version: number, known: number): void {
  refuseNewerSchema(version, known)
  if (version === known) return
  throw new Error(
    version === 0
      ? 'Cannot read the database: nothing is set up in it; start the service once'
      : `Cannot read the database: it is at version ${version}, this program at ${known}; ` +
          'start this program on it once',
  )
}
