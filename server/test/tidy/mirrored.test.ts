import assert from 'node:assert/strict'
import path from 'node:path'
import { describe, test } from 'node:test'
import { assertNone, sourceFiles } from './source.ts'

const STORAGE = 'src/adapters/storage/'

/**
 * Files of one database's adapter that have no counterpart in the other's, each with the reason. A test is listed unless the file that
 * it is named after is.
 */
const ALONE: Readonly<Record<string, string>> = {
  'sqlite/batch.ts': 'steps are sent to the writer thread as bytes',
  'sqlite/commit-batcher.ts': 'a batch is bytes, and one writer takes them',
  'sqlite/commit-watchdog.ts': 'PostgreSQL has a timer per batch, which takes a round trip anyway',
  'sqlite/conflict-of.ts': 'the writer thread answers with the number of the refused statement',
  'sqlite/copy-database.ts': 'PostgreSQL is backed up with its own tools',
  'sqlite/data-folder.ts': 'the database is a folder that one process holds',
  'sqlite/earlier-events.ts':
    'a row holds several audit events: there, a row costs more than an event',
  'sqlite/event-loop.ts': 'reads run on the event loop, in time slices; PostgreSQL reads elsewhere',
  'sqlite/ids.ts': 'ids are stored as bytes; PostgreSQL has a type for them',
  'sqlite/long-list.ts': 'one writer serves all: a long list must not hold up the others',
  'sqlite/long-rows.ts': 'one writer serves all: each statement is bounded in bytes',
  'sqlite/make-data-folder.ts': 'the database is a folder',
  'sqlite/move-mark.ts':
    'a vault moves from SQLite to PostgreSQL, which keeps a row about the move',
  'sqlite/moved-bytes-estimator.ts': 'one writer serves all: two long ends must not share a batch',
  'sqlite/queue-activity.ts': 'only the queue in front of one writer is measured',
  'sqlite/quick-check.ts': 'PostgreSQL checks its pages itself',
  'sqlite/read-only-address.ts': 'a file can be opened without writing beside it',
  'sqlite/read-transaction.ts': 'a read is several short statements; on PostgreSQL it is one',
  'sqlite/small-thread.ts': 'the writer is a thread',
  'sqlite/staging-batches.ts':
    'a long list is written in several transactions; on PostgreSQL in one',
  'sqlite/statements.ts': 'a step is the number of a statement; on PostgreSQL its text',
  'sqlite/token-blocks.ts': 'PostgreSQL finds the page of a list without sums per block',
  'sqlite/unusable-database.ts': 'the disk and the file are ours to diagnose',
  'sqlite/vault-source.ts': 'a vault moves from SQLite to PostgreSQL',
  'sqlite/writer-thread.ts': 'the writer is a thread',
  'sqlite/writer.ts': 'the writer is a thread',

  'sqlite/connection.test.ts': 'durability and deletion are settings of a connection',
  'sqlite/crash.test.ts': 'kills the process that holds the database',
  'sqlite/faults.test.ts': 'makes the disk fail beneath the writer thread',
  'sqlite/inspection.test.ts': 'inspects damaged files',
  'sqlite/job-sizes.test.ts': 'triggers keep the sizes; PostgreSQL sums them up',
  'sqlite/several-rows.test.ts':
    'rows that have values in common are inserted by another statement',
  'sqlite/token-counts.test.ts': 'triggers keep the counts',
  'sqlite/token-lists.test.ts': 'lists are read in chunks and by blocks',
  'sqlite/transactions.test.ts':
    'looks for traces in the files, and for scans in the plans of the numbered statements',
  'sqlite/vault-reader.test.ts':
    'tables are converted to the form that moves; on PostgreSQL they have it',

  'postgres/all-of.ts': 'statements are pipelined; on SQLite each is synchronous',
  'postgres/binary-array.ts': 'the wire protocol has a binary format',
  'postgres/connection-settings.ts': 'a connection is configured by a URL and certificates',
  'postgres/database.ts': 'connections are pooled',
  'postgres/database-url.ts': 'a database has an address; SQLite has a folder',
  'postgres/lock-tenants.ts': 'several servers write; SQLite has one writer',
  'postgres/plain-commits.ts': 'commits share statements; on SQLite the writer gathers their rows',
  'postgres/password-file.ts': 'a database on another machine asks who connects',
  'postgres/primary-client.ts': 'a standby must not answer; SQLite has none',
  'postgres/server-list.ts': 'a database may have several servers',
  'postgres/session.ts': 'a connection answers later; on SQLite each call returns its rows',
  'postgres/session-settings.ts': 'a session has settings that others may have chosen',
  'postgres/text.ts': 'its text cannot hold NUL',
  'postgres/tip-comparison.ts':
    'a failover may lose what a server has seen; a SQLite file stays with its one process',
  'postgres/tip-memory.ts':
    'a failover may lose what a server has seen; a SQLite file stays with its one process',
  'postgres/token-finder.ts': 'look-ups share round trips; SQLite needs none',
  'postgres/vault-target.ts': 'a vault moves from SQLite to PostgreSQL',

  'postgres/envelope-reader.test.ts': 'the byte limit is part of the statement',
  'postgres/failover.test.ts': 'switches between a primary and its standby',
  'postgres/outcomes.test.ts': 'makes connections fail, and transactions lose to others',
  'postgres/portable-sql.test.ts': 'other databases speak the language',
  'postgres/sweep.test.ts': 'the byte limit of a chunk is part of its statements',
  'postgres/token-conditions.test.ts': 'the planner has statistics, which may be old',
  'postgres/two-servers.test.ts': 'several servers share a database',
}

test('files of the two adapters that do the same have the same name', () => {
  const files = sourceFiles().flatMap((it) =>
    it.path.startsWith(STORAGE) ? [it.path.slice(STORAGE.length)] : [],
  )
  assert.ok(files.length > 100, `it saw ${files.length} files`)
  assertNone(strays(files, ALONE))
})

describe('strays()', () => {
  const caught: [files: string[], alone: string[], message: RegExp][] = [
    [['sqlite/a.ts'], [], /sqlite\/a\.ts: has no counterpart/],
    [['postgres/a.ts', 'sqlite/b.ts'], ['sqlite/b.ts'], /postgres\/a\.ts: has no counterpart/],
    [
      ['sqlite/a.ts', 'sqlite/a.test.ts', 'postgres/a.ts'],
      [],
      /sqlite\/a\.test\.ts: has no counterpart/,
    ],
    [[], ['sqlite/a.ts'], /sqlite\/a\.ts: does not exist/],
    [['sqlite/a.ts', 'postgres/a.ts'], ['sqlite/a.ts'], /sqlite\/a\.ts: has a counterpart/],
  ]
  for (const [files, alone, message] of caught) {
    test(`catches ${message.source} among ${files.join(', ')}`, () => {
      const found = strays(files, Object.fromEntries(alone.map((it) => [it, 'a reason'])))
      assert.equal(found.length, 1)
      assert.match(found[0]!, message)
    })
  }

  test('lets pass counterparts, listed files with their tests, and the files of neither', () => {
    const files = ['sqlite/a.ts', 'postgres/a.ts', 'sqlite/b.ts', 'sqlite/b.test.ts', 'entity/c.ts']
    assert.deepEqual(strays(files, { 'sqlite/b.ts': 'a reason' }), [])
  })
})

/** Returns, for each file that is neither mirrored nor listed, and for each that is listed in vain, what to do. */
function strays(files: readonly string[], alone: Readonly<Record<string, string>>): string[] {
  const isThere = new Set(files)
  const isListed = (file: string): boolean =>
    file in alone || file.replace(/\.test\.ts$/, '.ts') in alone
  const unlisted = files
    .filter((it) => counterpartOf(it) !== null && !isThere.has(counterpartOf(it)!) && !isListed(it))
    .map((it) => `${it}: has no counterpart: name both alike, or list it with a reason`)
  const vain = Object.keys(alone).flatMap((it) => {
    if (!isThere.has(it)) return [`${it}: does not exist: remove it from the list`]
    return isThere.has(counterpartOf(it)!)
      ? [`${it}: has a counterpart: remove it from the list`]
      : []
  })
  return [...unlisted, ...vain]
}

/** Returns the path that the other adapter's file has; null for a file of neither. */
function counterpartOf(file: string): string | null {
  const [folder, ...names] = file.split('/')
  const other = { sqlite: 'postgres', postgres: 'sqlite' }[folder!]
  return other === undefined ? null : path.posix.join(other, ...names)
}
