import { CheckSkipped, failed, ok, warning, type Check } from './check.ts'

/** Whether the database is at this program's version. */
export const SCHEMA_CHECK: Check = {
  name: 'schema-version',
  group: 'database',
  run: async ({ database, service, config }) => {
    const { version, knownVersion, facts } = await database()
    if (facts?.forbiddenTables.includes('schema_version') === true) {
      throw new CheckSkipped('its table cannot be read: see the check writable')
    }
    if (version > knownVersion) {
      return failed(
        `The database is at version ${version}, but this program knows only ${knownVersion}, so it refuses to start.`,
        'Install the newer program again, or restore a backup from before the upgrade (symbolon restore).',
      )
    }
    if (version === 0) {
      return warning('The database has no tables yet.', 'Start the service once: symbolon serve.')
    }
    if (version < knownVersion) {
      const others = service.running || config.databaseUrl !== null
      return warning(
        `The database is at version ${version}: the next start of this program migrates it to ${knownVersion}.`,
        others
          ? 'Back it up, then stop the older service and start this one (symbolon serve).'
          : 'Back it up, then start the service (symbolon serve).',
      )
    }
    return ok(`The database is at this program's version, ${version}.`)
  },
}
