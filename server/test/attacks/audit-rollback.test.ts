/**
 * An attacker puts the whole database back to yesterday. Everything in it is genuine, so that only the checkpoints that the service
 * announced outside of it can tell.
 */
import assert from 'node:assert/strict'
import { appendFileSync, cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { FileKeyProvider } from '../../src/adapters/local-keyring/file-key-provider.ts'
import { parseCheckpointLine, type CheckpointLine } from '../../src/audit/checkpoint-line.ts'
import { keepEvents, keepFirstEvent } from '../kit/audit-attack.ts'
import { CHAIN_START } from '../../src/ports/audit-log.ts'
import { freshDatabase } from '../kit/postgres/test-database.ts'
import { startHostedVault } from '../kit/hosted-vault.ts'
import { runSymbolon, temporaryFolder, type Finished } from '../kit/running-vault.ts'
import { readDocument } from '../tidy/docs.ts'

/** A vault of which copies can be made and put back. */
interface Rollback {
  readonly home: string
  /** The file of checkpoints, on another volume. */
  readonly file: string
  /** Starts the service, sends it requests, and stops it; returns its log. */
  readonly serve: (requests: number) => Promise<string>
  /** Returns a function that puts the database back to the present state. */
  readonly keep: () => Promise<() => Promise<void>>
  readonly verify: (...flags: string[]) => Promise<Finished>
  readonly variables: () => Record<string, string>
}

for (const store of ['sqlite', 'postgres'] as const) {
  describe(`a database put back to yesterday, on ${store}`, { concurrency: 2 }, () => {
    test('passes alone, and is named by its file of checkpoints and by the log of its service', async (t) => {
      const { home, file, serve, keep, verify } = await rollback(t, store)
      await serve(1)
      const putBack = await keep()
      const log = join(home, 'log')
      writeFileSync(log, await serve(2))
      assert.equal((await verify('--against', file, log)).status, 0)
      const yesterday = numbersIn(file)[0]!
      await putBack()
      const alone = await verify()
      assert.equal(alone.status, 0, alone.out + alone.err)
      for (const it of [file, log]) {
        const { status, out } = await verify('--against', it)
        assert.equal(status, 1, out)
        const named = new RegExp(
          String.raw`: BROKEN: event (\d+) of the checkpoint of 20\S+Z is missing: the database is older than a checkpoint it once issued`,
        ).exec(out)
        assert.ok(Number(named?.[1]) > yesterday, out)
        assert.match(out, /^ {2}compared: \d+ checkpoints, of 20\S+Z to 20\S+Z\n {4}\d+ match\n/m)
      }
      const [shown, said] = [
        shapeOf(exampleOf('BROKEN: event 902')),
        shapeOf((await verify('--against', file)).out),
      ]
      for (const it of shown.split('\n')) assert.ok(said.includes(it), `${it}\nis not in\n${said}`)
      const [line] = readFileSync(file, 'utf8').split('\n')
      assert.deepEqual(
        Object.keys(JSON.parse(line!)),
        Object.keys(JSON.parse(exampleOf('{"event"'))),
      )
      const inJson = JSON.parse((await verify('--json', '--against', file)).out)
      assert.equal(inJson.intact, false)
      assert.match(inJson.broken.what, /is older than a checkpoint it once issued/)
      const { checkpoints, equal, missing, ...rest } = inJson.against
      assert.ok(equal > 0 && missing > 0)
      assert.equal(checkpoints, equal + missing)
      for (const time of ['from', 'to']) assert.match(rest[time], /^20\S+Z$/)
      assert.deepEqual(
        { ...rest, from: null, to: null },
        { from: null, to: null, removed: 0, different: 0, restored: 0, not_genuine: 0 },
      )
    })

    test('is named although the service went on from there, past the events that were lost', async (t) => {
      const { file, serve, keep, verify } = await rollback(t, store)
      await serve(1)
      const putBack = await keep()
      await serve(2)
      const lost = Math.max(...numbersIn(file))
      await putBack()
      await serve(6)
      assert.ok(Math.max(...numbersIn(file)) > lost)
      assert.equal((await verify()).status, 0)
      const { status, out } = await verify('--against', file)
      assert.equal(status, 1)
      assert.match(out, /: BROKEN: event \d+ is another one than in the checkpoint of 20\S+Z/)
    })

    test('is named by the tip that an earlier run printed', async (t) => {
      const { serve, keep, verify } = await rollback(t, store)
      await serve(1)
      const putBack = await keep()
      await serve(2)
      const { tenant, tip, last, hash } = JSON.parse((await verify('--json')).out)
      assert.equal(tip, `${last}:${hash}`)
      assert.ok((await verify()).out.includes(`\n  tip: ${tip}\n`))
      const compare = (...flags: string[]) => verify('--tenant', tenant, '--tip', tip, ...flags)
      const same = await compare()
      assert.equal(same.status, 0, same.out + same.err)
      assert.ok(same.out.includes(`\n  compared: event ${last} is the one of --tip\n`), same.out)
      assert.equal(JSON.parse((await compare('--json')).out).compared_tip, 'same')

      await putBack()
      const missing = await compare()
      assert.equal(missing.status, 1)
      const example = shapeOf(exampleOf('of --tip is missing'))
      for (const it of example.split('\n')) assert.ok(shapeOf(missing.out).includes(it), it)
      assert.doesNotMatch(missing.out, /does not match --tip/)
      assert.equal((await verify()).status, 0)

      await serve(6)
      const different = await compare()
      assert.equal(different.status, 1)
      assert.match(different.out, /: BROKEN: event \d+ is another one than that of --tip: the /)
      const json = JSON.parse((await compare('--json')).out)
      assert.deepEqual([json.intact, json.tip, json.compared_tip], [false, null, 'different'])
      assert.equal(json.broken.entry, last)
      const gone = await verify('--tenant', crypto.randomUUID(), '--tip', tip)
      assert.equal(gone.status, 1)
      assert.match(
        gone.err,
        /There is no tenant \S+: .* before it was created, .* event \d+ of --tip/,
      )
    })
  })
}

test('a tip that cannot be one, or names no tenant, is refused before anything is read', async (t) => {
  const { verify, serve } = await rollback(t, 'sqlite')
  await serve(0)
  const { tenant, hash } = JSON.parse((await verify('--json')).out)
  const alone = await verify('--tip', `3:${hash}`)
  assert.deepEqual([alone.status, /--tip requires --tenant/.test(alone.err)], [1, true])
  for (const tip of [
    '',
    '3',
    `0:${hash}`,
    `3:${hash}0`,
    `9007199254740993:${hash}`,
    `3:${'x'.repeat(64)}`,
  ]) {
    const { status, err } = await verify('--tenant', tenant, '--tip', tip)
    assert.deepEqual([status, /must be the number of an event/.test(err)], [1, true], tip)
  }
})

test('a tenant that is not in the database any more is named, and one that was deleted is not', async (t) => {
  const { file, serve, keep, verify, variables } = await rollback(t, 'sqlite')
  await serve(1)
  const putBack = await keep()
  const made = await runSymbolon(['init', '--json', '--name', 'other'], variables())
  const { tenant_id: other, api_key: key } = JSON.parse(made.out)
  const whole = await keep()
  await putBack()
  assert.equal((await verify()).status, 0)
  const gone = await verify('--against', file)
  assert.equal(gone.status, 1)
  assert.match(
    gone.out,
    new RegExp(`^tenant ${other}: GONE: the tenant is not in the database, but has 1 `, 'm'),
  )
  for (const flags of [[], ['--tenant', other]]) {
    const lines = (await verify('--json', ...flags, '--against', file)).out.trim().split('\n')
    const json = lines.map((it) => JSON.parse(it)).find((it) => it.tenant === other)
    assert.deepEqual([json.intact, json.against.checkpoints], [false, 1])
  }
  await whole()
  const vault = await startHostedVault(variables()['SYMBOLON_DATA_DIR']!, variables())
  const headers = { 'bt-api-key': key }
  const deleted = await fetch(`${vault.url}/tenants/self`, { method: 'DELETE', headers })
  assert.equal(deleted.status, 204)
  await vault.stop('SIGKILL')
  const { status, out } = await verify('--against', file)
  assert.equal(status, 0, out)
  assert.match(out, new RegExp(`^tenant ${other}: deleted; its keys are gone, so that \\d+ `, 'm'))
})

test('forged lines are named, and lines that were cut off or are of other events are not', async (t) => {
  const { file, serve, verify } = await rollback(t, 'sqlite')
  await serve(1)
  const whole = readFileSync(file, 'utf8')
  const [line] = whole.split('\n')
  writeFileSync(
    file,
    `not JSON\n{"event":"request"}\n${line!.slice(0, 90)}\n${whole}${line!.slice(0, 50)}`,
  )
  const cut = await verify('--against', file)
  assert.equal(cut.status, 0, cut.out)
  assert.match(cut.out, /^Not compared: 1 line of a checkpoint that cannot be read/m)
  appendFileSync(file, `\n${line!.replace(/"number":\d+/, '"number":999')}\n`)
  const forged = await verify('--against', file)
  assert.equal(forged.status, 1)
  assert.match(forged.out, /: intact, /)
  assert.match(forged.out, /^ {2}NOT GENUINE: 1 line: not made with the keys of this tenant/m)
  assert.equal(JSON.parse((await verify('--json', '--against', file)).out).against.not_genuine, 1)
})

test('a checkpoint from the log is of no use in the database: an audit log cannot be cut back to it', async (t) => {
  const { file, serve, verify, variables } = await rollback(t, 'sqlite')
  await serve(3)
  const { hash, number, at, proof } = linesIn(file)[0]!
  keepEvents(variables()['SYMBOLON_DATA_DIR']!, number, ({ listed, hash: end }) => {
    assert.equal(Buffer.from(end).toString('hex'), hash)
    return { removed: CHAIN_START, last: { number, listed, hash: end }, at, access: null, proof }
  })
  const { status, out } = await verify()
  assert.equal(status, 1, out)
  assert.match(out, /: BROKEN: event 1 cannot be vouched for: the checkpoint is not genuine/)
})

test('events from before the point at which a run resumes are compared, too', async (t) => {
  const { home, file, serve, keep, verify, variables } = await rollback(t, 'sqlite')
  await serve(1)
  const putBack = await keep()
  await serve(2)
  await putBack()
  await serve(6)
  const [verdict] = (await verify('--json')).out.split('\n').map((it) => JSON.parse(it || 'null'))
  const resume = join(home, 'resume')
  const rootKey = await FileKeyProvider.open(join(variables()['SYMBOLON_DATA_DIR']!, 'root.key'), {
    createIfMissing: false,
  })
  const { tenant, first, last, events, hash, sealed } = verdict
  const done = { first, last, events, hash, sealed, sealedAt: 1, from: 1, to: 1, flaw: null }
  const verdicts = [{ tenantId: tenant, ...done, uncovered: [] }]
  writeFileSync(resume, JSON.stringify({ rootKey: rootKey.id, verdicts, at: null }), {
    mode: 0o600,
  })
  const { status, out } = await verify('--resume', resume, '--against', file)
  assert.equal(status, 1)
  assert.match(out, /from 1970.*\n.*\n.*\n {2}compared: /)
  assert.match(out, /: BROKEN: event \d+ is another one than in the checkpoint/)
})

test('a file without a checkpoint is refused, like one that cannot be read or a name without --against', async (t) => {
  const { home, file, serve, verify } = await rollback(t, 'sqlite')
  await serve(0)
  const empty = join(home, 'empty')
  writeFileSync(empty, '')
  for (const it of [empty, join(home, 'data', 'symbolon.db')]) {
    const { status, err } = await verify('--against', it)
    assert.deepEqual([status, /no file with an audit checkpoint/.test(err)], [1, true], err)
  }
  assert.match((await verify('--against', home)).err, /is not a regular file|EISDIR/)
  assert.match((await verify('--against', join(home, 'none'))).err, /cannot be read/)
  assert.match((await verify(file)).err, /only after --against/)
  const other = await verify('--against', file, '--tenant', '01945d00-0000-4000-8000-00000000000b')
  assert.match(other.err, /There is no tenant/)
})

test('an audit log that was cut and is named for that stays named for it', async (t) => {
  const { file, serve, verify, variables } = await rollback(t, 'sqlite')
  await serve(1)
  keepFirstEvent(variables()['SYMBOLON_DATA_DIR']!)
  const { status, out } = await verify('--against', file)
  assert.equal(status, 1)
  assert.match(out, /: BROKEN: event 1 cannot be vouched for: the checkpoint is gone/)
  assert.match(out, /^ {4}\d+ have an event that is missing/m)
})

async function rollback(t: TestContext, store: 'sqlite' | 'postgres'): Promise<Rollback> {
  const home = temporaryFolder(t)
  const [folder, file] = [join(home, 'data'), join(home, 'checkpoints')]
  let database = store === 'postgres' ? await freshDatabase() : null
  const variables = (): Record<string, string> => ({
    SYMBOLON_DATA_DIR: folder,
    SYMBOLON_AUDIT_CHECKPOINT_FILE: file,
    ...(database !== null && { SYMBOLON_DATABASE_URL: database }),
  })
  let key = ''
  return {
    home,
    file,
    variables,
    serve: async (requests) => {
      const vault = await startHostedVault(folder, variables())
      key = /api_key\s+(\S+)/.exec(vault.greeting)?.[1] ?? key
      for (let n = 0; n < requests; n++) {
        await fetch(`${vault.url}/applications`, { headers: { 'bt-api-key': key } })
      }
      assert.equal((await vault.stop()).status, 0)
      return vault.printed()
    },
    keep: async () => {
      if (database !== null) {
        const copy = await freshDatabase(database)
        return async () => {
          database = copy
        }
      }
      const copy = temporaryFolder(t)
      cpSync(folder, copy, { recursive: true })
      return async () => {
        rmSync(folder, { recursive: true })
        cpSync(copy, folder, { recursive: true })
      }
    },
    verify: async (...flags) => await runSymbolon(['audit', 'verify', ...flags], variables()),
  }
}

/** Returns the example in docs/operate/audit-log.md that contains this. */
function exampleOf(text: string): string {
  const document = readDocument('docs/operate/audit-log.md', 'how a rollback is detected')
  const fences = Array.from(document.matchAll(/^```\w*\n([^]*?)\n```$/gm), ([, it]) => it!)
  return fences.find((it) => it.includes(text))!
}

/** Replaces ids, times and numbers, which differ from vault to vault. */
function shapeOf(output: string): string {
  return output
    .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'ID')
    .replaceAll(/20\d\d-\S+?Z/g, 'TIME')
    .replaceAll(/\d+/g, 'N')
}

function linesIn(file: string): CheckpointLine[] {
  return readFileSync(file, 'utf8')
    .split('\n')
    .map(parseCheckpointLine)
    .filter((it) => it !== null && it !== 'unreadable')
}

function numbersIn(file: string): number[] {
  return linesIn(file).map((it) => it.number)
}
