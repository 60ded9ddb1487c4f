import { passwordFileOf } from '../../adapters/storage/postgres/connection-settings.ts'
import type { PostgresFacts } from '../../adapters/storage/postgres/inspection.ts'
import { isOwners } from '../../adapters/storage/postgres/requirements.ts'
import type { Config } from '../../config.ts'
import {
  CheckSkipped,
  failed,
  ok,
  usesPostgres,
  warning,
  type Check,
  type Finding,
} from './check.ts'
import { reasonOf } from './run-checks.ts'

/** The oldest version whose features suffice. Source: docs/operate/postgres.md. */
const VERSION_MIN = 150_000

/** The PostgreSQL database, as seen by its user from this address. */
export const POSTGRES_CHECKS: readonly Check[] = [
  {
    name: 'database',
    group: 'database',
    applies: usesPostgres,
    run: async ({ openDatabase, config }) => {
      try {
        const { facts } = await openDatabase()
        return reachedBy(facts!)
      } catch (error) {
        const reason = error instanceof Error ? reasonOf(error) : String(error)
        return failed(`${reason}.`, remedyOf(reason, config))
      }
    },
  },
  about('durability', ({ settings, ...it }) => {
    const lazy = settings['synchronous_commit'] ?? 'on'
    if (lazy !== 'on' && lazy !== 'remote_apply') {
      return failed(
        `synchronous_commit is ${lazy}: a power cut would lose acknowledged writes, and the service refuses to start.`,
        setForRole(it, 'synchronous_commit', 'on'),
      )
    }
    const off = ['fsync', 'full_page_writes'].filter((name) => settings[name] === 'off')
    if (off.length > 0) {
      return failed(
        `${off.join(' and ')} ${off.length === 1 ? 'is' : 'are'} off: a power cut can damage the whole database.`,
        off.map((name) => `ALTER SYSTEM SET ${name} = on`).join('; ') +
          '; SELECT pg_reload_conf();',
      )
    }
    return ok(`synchronous_commit is ${lazy}, and fsync and full_page_writes are on.`)
  }),
  about('text-and-bytes', ({ settings }) => {
    const encoding = settings['server_encoding'] ?? 'UTF8'
    if (encoding !== 'UTF8' && encoding !== 'SQL_ASCII') {
      return failed(
        `The encoding of the database is ${encoding}, which lacks some characters; the service refuses to start.`,
        "Create a database with CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0, and set SYMBOLON_DATABASE_URL to it.",
      )
    }
    return ok(`The encoding is ${encoding}.`)
  }),
  about('writable', (facts) => {
    const { schema, mayCreate, forbiddenTables, user } = facts
    if (schema === null || !mayCreate) {
      const name = schema ?? 'public'
      return failed(
        `The user ${user} may not create tables in the schema ${name}.`,
        `As a superuser: ALTER SCHEMA ${quoted(name)} OWNER TO ${quoted(user)};`,
      )
    }
    if (forbiddenTables.length > 0) {
      const [first] = forbiddenTables
      const tables = forbiddenTables.map((it) => `${quoted(schema)}.${quoted(it)}`).join(', ')
      return failed(
        `The user ${user} may not read and write ${forbiddenTables.length} of the tables, such as ${first}.`,
        `As their owner: GRANT SELECT, INSERT, UPDATE, DELETE ON ${tables} TO ${quoted(user)};`,
      )
    }
    return ok(`The user ${user} may create tables in the schema ${schema}, and write.`)
  }),
  about('connections', (facts) => {
    const { connectionsNeeded: needed, user, database } = facts
    const limits = [
      { max: facts.connectionsMax, remedy: 'Raise max_connections, and restart PostgreSQL.' },
      {
        max: facts.roleConnectionsMax,
        remedy: `ALTER ROLE ${quoted(user)} CONNECTION LIMIT -1;`,
      },
      {
        max: facts.databaseConnectionsMax,
        remedy: `ALTER DATABASE ${quoted(database)} CONNECTION LIMIT -1;`,
      },
    ]
    for (const { max, remedy } of limits) {
      if (max < 0 || max >= needed) continue
      return failed(
        `${max} connections are allowed, and each server opens up to ${needed}.`,
        remedy,
      )
    }
    const { connectionsMax, connections } = facts
    const found = `${connections} of ${connectionsMax} connections are open`
    if (connectionsMax - connections >= needed) return ok(`${found}; a server needs ${needed}.`)
    return warning(
      `${found}, and each server opens up to ${needed}.`,
      'End unneeded connections (pg_stat_activity), or raise max_connections.',
    )
  }),
  about('transaction-isolation', ({ isolation }) => {
    if (isolation === 'read committed') return ok('Transactions are read committed.')
    return warning(
      `Transactions are ${isolation}, although the service asks for read committed: under load, commits are refused with 503.`,
      'Allow read committed in the database.',
    )
  }),
  about('timeouts', ({ settingsUnheld, ownSession, user }) => {
    if (settingsUnheld.length > 0) {
      return failed(
        `The settings of the service do not apply to its statements (${settingsUnheld.join(', ')}), and it refuses to start.`,
        settingsUnheld.every(isOwners)
          ? `Have the pooler reconnect (RECONNECT on its console) after ${setForRole({ user }, 'exit_on_error', 'off')}`
          : 'Connect without the pooler, or have it drop the startup parameter statement_timeout.',
      )
    }
    if (ownSession) return ok("The service's timeouts apply to its statements.")
    return ok(
      "The service's timeouts apply to its statements. A pooler drops its startup parameter, so each read takes a transaction.",
    )
  }),
  about('named-statements', ({ namesTracked }) => {
    if (namesTracked) return ok('Named statements work on every connection.')
    return failed(
      'The pooler shares sessions and does not track prepared statements, and the service refuses to start.',
      'Set max_prepared_statements = 100 (PgBouncer 1.21 or later) or pool_mode = session, or connect without the pooler.',
    )
  }),
  about('autovacuum', ({ settings }) => {
    if (settings['autovacuum'] !== 'off') return ok('autovacuum is on.')
    return warning(
      'autovacuum is off: deleted rows stay, statistics go stale, and writes eventually stop.',
      'ALTER SYSTEM SET autovacuum = on; SELECT pg_reload_conf();',
    )
  }),
  about('database-tls', ({ remote, encrypted }) => {
    if (!remote) return ok('The database is on this machine.')
    if (encrypted) return ok('The connection to the database is encrypted and verified.')
    return warning(
      'The connection to the database on another machine is not encrypted (sslmode=disable).',
      'Remove sslmode=disable from SYMBOLON_DATABASE_URL, unless the network is as private as this machine.',
    )
  }),
  about('unfinished-move', ({ unfinishedMove, forbiddenTables }) => {
    if (forbiddenTables.includes('moving')) {
      throw new CheckSkipped('its table cannot be read: see the check writable')
    }
    if (!unfinishedMove) return ok('No move into the database is unfinished.')
    return failed(
      'A move of a vault into the database is not finished.',
      'Run symbolon migrate --from sqlite --to postgres again, on the machine of the data folder.',
    )
  }),
]

/** Returns a check of the facts alone. It is skipped if the database cannot be reached. */
function about(name: string, judge: (facts: PostgresFacts) => Finding): Check {
  return {
    name,
    group: 'database',
    applies: usesPostgres,
    run: async ({ database }) => {
      const { facts } = await database()
      return judge(facts!)
    },
  }
}

function reachedBy({ version, versionNumber, database, user }: PostgresFacts): Finding {
  if (versionNumber >= VERSION_MIN) {
    return ok(`PostgreSQL ${version} answers: database ${database}, user ${user}.`)
  }
  return failed(
    `The database is PostgreSQL ${version}, but 15 or later is needed.`,
    'Upgrade the database server to PostgreSQL 15 or later.',
  )
}

/** Returns the remedy for a failed connection. */
function remedyOf(reason: string, { databaseUrl }: Pick<Config, 'databaseUrl'>): string {
  const file = databaseUrl === null ? null : passwordFileOf(databaseUrl)
  if (file !== null && /password authentication/.test(reason)) {
    return (
      `Correct the user in SYMBOLON_DATABASE_URL, or the password in the password file '${file}'. ` +
      'The variable PGPASSWORD is used before the file: unset it.'
    )
  }
  for (const [pattern, remedy] of REMEDIES) if (pattern.test(reason)) return remedy
  return 'Start the database, and check the address in SYMBOLON_DATABASE_URL.'
}

/** Source: postgresql.org, appendix "PostgreSQL Error Codes", in English, and Node's codes. */
const REMEDIES: readonly (readonly [RegExp, string])[] = [
  [/SYMBOLON_DATABASE_URL/, 'Correct SYMBOLON_DATABASE_URL.'],
  [/is a standby/, 'Set SYMBOLON_DATABASE_URL to the address of the primary.'],
  [/startup parameter/, 'List statement_timeout in ignore_startup_parameters of the pooler.'],
  [
    /PGPASSFILE is not set/,
    'Set PGPASSFILE to a file of mode 600 with a line host:port:database:user:password.',
  ],
  [
    /password file .*(?:no line for it|empty password)/,
    'Give the password file a line host:port:database:user:password for it.',
  ],
  [/password file .*chmod 600/, 'Run chmod 600 on the password file.'],
  [
    /password file .*(?:ENOENT|ENOTDIR|no regular file)/,
    'Create the password file, or correct its name: passfile in SYMBOLON_DATABASE_URL, or PGPASSFILE.',
  ],
  [/password file/, "Give the service's user access to the password file."],
  [
    /password authentication|role "|no password/,
    'Correct the user and the password in SYMBOLON_DATABASE_URL.',
  ],
  [
    /database "/,
    'Create the database (CREATE DATABASE), or correct its name in SYMBOLON_DATABASE_URL.',
  ],
  [
    /too many (?:clients|connections)|connection slots/,
    'End other connections, or raise the limit of connections.',
  ],
  [
    /certificate|self-signed|altnames|SSL/i,
    'Give the database a certificate for the name in SYMBOLON_DATABASE_URL, and add sslrootcert with the PEM file of its authority.',
  ],
]

function setForRole({ user }: Pick<PostgresFacts, 'user'>, setting: string, value: string): string {
  return `ALTER ROLE ${quoted(user)} SET ${setting} = ${value};`
}

function quoted(name: string): string {
  return /^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`
}
