/** The real program while its clock is set back and forward: `faketime` shifts it, by a file that is read at each call. */
import assert from 'node:assert/strict'
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { FileKeyProvider } from '../../src/adapters/local-keyring/file-key-provider.ts'
import { LocalKeyring } from '../../src/adapters/local-keyring/local-keyring.ts'
import {
  openPostgresAuditLog,
  type PostgresAuditLogSnapshot,
} from '../../src/adapters/storage/postgres/audit-log-snapshot.ts'
import { openSqliteAuditLog } from '../../src/adapters/storage/sqlite/audit-log-snapshot.ts'
import { SystemClock } from '../../src/adapters/system/system-clock.ts'
import { SystemRandom } from '../../src/adapters/system/system-random.ts'
import { verifyAuditLog, type AuditVerdict } from '../../src/audit/verification.ts'
import type { Clock } from '../../src/ports/clock.ts'
import { lacksPrograms } from '../kit/programs.ts'
import { freshDatabase } from '../kit/postgres/test-database.ts'
import {
  runSymbolon,
  startVault,
  temporaryFolder,
  type RunningVault,
} from '../kit/running-vault.ts'
import { findFaketime } from '../repeat/runs.ts'

const HOUR_S = 60 * 60
const DAY_S = 24 * HOUR_S
const YEAR_S = 365 * DAY_S

const skip = lacksPrograms('faketime')

/** Of the whole run, in seconds. */
const RUN_SHIFT = secondsOf(process.env['FAKETIME'] ?? '0')

describe('when the clock is set', { skip, concurrency: true }, () => {
  for (const store of ['sqlite', 'postgres'] as const) {
    test(`back and forward while the service runs, it covers every event, and the audit log is intact at each moment: ${store}`, async (t) => {
      const stage = makeStage(t, store === 'postgres' ? await freshDatabase() : null)
      const vault = await stage.start()
      const headers = { 'bt-api-key': /api_key\s+(\S+)/.exec(vault.greeting)![1]! }
      for (const shift of [0, -HOUR_S, -1.5 * DAY_S, -YEAR_S, YEAR_S, 0]) {
        stage.setClock(shift)
        await use(vault, headers)
        await stage.covered()
      }
      stage.setClock(-1.5 * DAY_S)
      assert.equal((await vault.stop()).status, 0)
      stage.setClock(0)
      const again = await stage.start()
      await use(again, headers)
      await stage.covered()
      assert.equal((await again.stop()).status, 0)
      assert.doesNotMatch(vault.printed() + again.printed(), /record_unsealed/)
      const { status, out } = await stage.command()
      assert.equal(status, 0, out)
    })
  }

  test('back by more than a day, and the service is killed before the next checkpoint, it says why it makes none, and the documented way out ends that', async (t) => {
    const stage = makeStage(t, null)
    let vault = await stage.start()
    const headers = { 'bt-api-key': /api_key\s+(\S+)/.exec(vault.greeting)![1]! }
    for (;;) {
      await use(vault, headers)
      const { sealed } = await stage.covered()
      stage.setClock(-1.5 * DAY_S)
      await use(vault, headers)
      await vault.stop('SIGKILL')
      stage.setClock(0)
      if ((await stage.verify()).sealed === sealed) break
      // A checkpoint came before the kill.
      vault = await stage.start()
    }
    const { flaw, sealed } = await stage.verify()
    assert.equal(flaw?.number, sealed + 1)
    assert.match(flaw.what, /put in, or the clock was set back/)
    vault = await stage.start()
    await use(vault, headers)
    await vault.stop()
    assert.match(vault.printed(), /"record_unsealed".*the clock was set back/)
    const named = await stage.command()
    assert.equal(named.status, 1)
    assert.match(named.out, new RegExp(`BROKEN: event ${sealed + 1} is older than the checkpoint`))

    stage.setClock(-DAY_S)
    vault = await stage.start()
    await vault.stop()
    await stage.covered()
    stage.setClock(0)
    const last = await stage.start()
    await use(last, headers)
    await stage.covered()
    await last.stop()
    assert.doesNotMatch(vault.printed() + last.printed(), /record_unsealed/)
  })
})

function makeStage(t: TestContext, database: string | null) {
  const folder = temporaryFolder(t)
  const file = join(folder, 'clock')
  const variables = {
    LD_PRELOAD: findFaketime(),
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_NO_CACHE: '1',
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
    NO_FAKE_STAT: '1',
    ...(database === null ? {} : { SYMBOLON_DATABASE_URL: database }),
  }
  let now = 0
  const machine = new SystemClock()
  const clock: Clock = {
    now: () => machine.now() + now * 1000,
    elapsed: () => machine.elapsed(),
    yield: () => machine.yield(),
    after: (ms) => machine.after(ms),
  }
  const setClock = (shift: number): void => {
    now = shift
    const ofProgram = RUN_SHIFT + shift
    // Renamed, since the program may read it at any moment.
    writeFileSync(`${file}.part`, `${ofProgram < 0 ? '-' : '+'}${Math.abs(ofProgram)}`)
    renameSync(`${file}.part`, file)
  }
  /** Verifies as the command does, without the time that a process takes to start. */
  const verify = async (): Promise<AuditVerdict> => {
    const opened: Pick<PostgresAuditLogSnapshot, 'tenants' | 'auditLog'> & {
      close: () => unknown
    } = database === null ? openSqliteAuditLog(folder) : await openPostgresAuditLog(database)
    try {
      const { tenants } = opened
      const rootKey = await FileKeyProvider.open(join(folder, 'root.key'), {
        createIfMissing: false,
      })
      const keyring = new LocalKeyring(rootKey, new SystemRandom(), (id) => tenants.keys(id))
      const [tenantId] = await tenants.ids()
      return await verifyAuditLog({ clock, keyring, store: opened }, tenantId!)
    } finally {
      await opened.close()
    }
  }
  /** Verifies until a checkpoint covers everything: the audit log is intact each time. */
  const covered = async (): Promise<AuditVerdict> => {
    for (let attempt = 0; attempt < 1000; attempt++) {
      const verdict = await verify()
      assert.equal(verdict.flaw, null, `clock set by ${now} s`)
      if (verdict.sealed === verdict.last) {
        const age = Math.abs(clock.now() - verdict.sealedAt!)
        assert.ok(age < (HOUR_S / 2) * 1000, `clock set by ${now} s, checkpoint ${age} ms off`)
        return verdict
      }
      await clock.after(50)
    }
    throw new Error(`clock set by ${now} s: no checkpoint covers everything`)
  }
  const command = () => runSymbolon(['audit', 'verify', '--data-dir', folder], variables)
  const start = async (): Promise<RunningVault> => {
    const vault = await startVault(folder, variables)
    t.after(() => vault.stop('SIGKILL'))
    return vault
  }
  setClock(0)
  return { setClock, verify, covered, command, start }
}

/** Reads a shift in one of the forms that `faketime` takes: `-7200`, or `+1.5d`. */
function secondsOf(shift: string): number {
  const [, amount, unit = 's'] = /^([+-]?[\d.]+)([smhdy])?$/.exec(shift) ?? []
  if (amount === undefined)
    throw new Error(`FAKETIME must be a shift, such as +86400, not ${shift}`)
  return Number(amount) * { s: 1, m: 60, h: HOUR_S, d: DAY_S, y: YEAR_S }[unit]!
}

/** Makes events. */
async function use({ url }: RunningVault, headers: Record<string, string>): Promise<void> {
  for (let n = 0; n < 3; n++) {
    assert.equal((await fetch(`${url}/applications`, { headers })).status, 200)
  }
}
