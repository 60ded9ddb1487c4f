import { statSync } from 'node:fs'
import { AUDIT_CHECKPOINT_LAG_MS_MAX, MiB } from '../../base/limits.ts'
import { timeOfAuditEvent } from '../../ports/audit-log.ts'
import { failed, ok, usesPostgres, warning, type Check, type Finding } from './check.ts'
import { existsDatabase, type DoctorContext, type VaultReaders } from './context.ts'

/** Clocks may differ this much, in milliseconds, before expiry becomes wrong. Source: docs/operate/postgres.md. */
const CLOCK_MS_MAX = 5_000

/** Tenants whose newest audit event is read. Ours. */
const TENANTS_MAX = 1_000

/** Memory that a service with a few reactors needs besides its page caches. Ours. */
const MEMORY_BYTES_MIN = 256 * MiB

/** Files and connections that a busy service opens: a thousand clients, as many destinations, and reactors. Ours. */
const OPEN_FILES_MIN = 4_096

export const MACHINE_CHECKS: readonly Check[] = [
  { name: 'clock', group: 'machine', run: checkClock },
  {
    name: 'database-clock',
    group: 'machine',
    applies: usesPostgres,
    run: async ({ machine, database }) => {
      const { facts } = await database()
      const off = machine.now() - facts!.timeMs
      if (Math.abs(off) <= CLOCK_MS_MAX) {
        return ok('The clocks of this machine and of the database agree within 5 seconds.')
      }
      return failed(
        `The clock of this machine is ${seconds(Math.abs(off))} ${off < 0 ? 'behind' : 'ahead of'} the database's.`,
        SET_THE_CLOCK,
      )
    },
  },
  {
    name: 'memory',
    group: 'machine',
    run: async ({ machine }) => {
      const figures = await machine.memory()
      if (figures === null) return ok('This system does not report its memory.')
      const [free, total] = [figures.availableBytes, figures.totalBytes].map(mebibytes)
      if (figures.availableBytes >= MEMORY_BYTES_MIN)
        return ok(`${free} of memory is available, of ${total} in total.`)
      return warning(
        `Only ${free} of memory is available, of ${total} in total; at least ${mebibytes(MEMORY_BYTES_MIN)} is needed.`,
        'Stop other programs, or give the machine or the container more memory.',
      )
    },
  },
  {
    name: 'open-files',
    group: 'machine',
    run: async ({ machine, service: { pid } }) => {
      // Another user's process hides its limit.
      const own = pid === null ? null : await machine.openFiles(pid)
      const figures = own ?? (await machine.openFiles('self'))
      if (figures === null) return ok('This system does not report the limit of open files.')
      const { limit, open } = figures
      const used = own === null || open === null ? '' : `, and the service has ${open} open`
      const found = `${own === null ? 'This shell' : 'The service'} may open ${limit} files${used}`
      if (own !== null && open !== null && open > limit * 0.9) {
        return failed(`${found}: new connections will soon be refused.`, RAISE_THE_LIMIT)
      }
      if (limit >= OPEN_FILES_MIN) return ok(`${found}.`)
      return warning(
        `${found}; every connection counts as one, and ${OPEN_FILES_MIN} are recommended.`,
        RAISE_THE_LIMIT,
      )
    },
  },
  {
    name: 'temporary-folder',
    group: 'machine',
    run: async ({ machine, config: { reactorLevel } }) => {
      const { path, flaw } = await machine.temporaryFolder()
      if (flaw === null) return ok(`Temporary files can be created in ${path}.`)
      return failed(
        `No temporary file can be created in ${path} (${flaw}), which reactors at the level ${reactorLevel} may need.`,
        "Set TMPDIR to a folder that the service's user may write to.",
      )
    },
  },
]

/** The clock is wrong if it is earlier than the program's files, or than an audit event. */
async function checkClock({ machine, config, vault }: DoctorContext): Promise<Finding> {
  const now = machine.now()
  const shown = new Date(now).toISOString()
  const built = statSync(new URL('../../../package.json', import.meta.url)).mtimeMs
  // npm gives every file in a package the same date, in 1985.
  if (now < built - DAY_MS) {
    return failed(
      `The clock says ${shown}, which is earlier than the files of this program.`,
      SET_THE_CLOCK,
    )
  }
  const readers = existsDatabase(config) ? await vault().catch(() => null) : null
  const newest = readers === null ? null : await newestEventAt(readers)
  if (newest !== null && newest > now + AUDIT_CHECKPOINT_LAG_MS_MAX) {
    return failed(
      `The clock says ${shown}, but the newest audit event is of ${new Date(newest).toISOString()}.`,
      `${SET_THE_CLOCK} If it is right now, it was wrong when that event was written.`,
    )
  }
  return ok(`The clock says ${shown}, which is plausible.`)
}

async function newestEventAt({ auditLog }: VaultReaders): Promise<number | null> {
  let newest: number | null = null
  for (const id of (await auditLog.tenantIds('all')).slice(0, TENANTS_MAX)) {
    const state = await auditLog.state(id)
    if (state === null || state.last.number === 0) continue
    const [row] = await auditLog.rowsAfter(id, state.last.number - 1, 1)
    if (row !== undefined) newest = Math.max(newest ?? 0, timeOfAuditEvent(row.entry))
  }
  return newest
}

function mebibytes(bytes: number): string {
  return `${Math.floor(bytes / MiB)} MiB`
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1_000)} s`
}

const DAY_MS = 24 * 60 * 60 * 1000
const SET_THE_CLOCK =
  'Set the clock, and have a time service such as chrony or systemd-timesyncd keep it right.'
const RAISE_THE_LIMIT =
  'Raise the limit for the service, for example with ulimit -n 65536 before it starts, or LimitNOFILE=65536 in its unit.'
