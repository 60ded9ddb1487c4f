import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { RememberingLog } from '../../test/kit/remembering-log.ts'
import { stillWorld, thinKeyProvider } from '../../test/kit/still-world.ts'
import { setUp } from '../access/applications/set-up.ts'
import { CheckpointAnnouncer } from './checkpoint-announcer.ts'
import { CHECKPOINT_EVENT, parseCheckpointLine } from './checkpoint-line.ts'
import { auditCheckpointer } from './checkpoint.ts'
import { sweepAuditLogs } from './retention.ts'
import { auditEventAt } from '../../test/kit/audit-event.ts'

const DAY_MS = 24 * 60 * 60 * 1000

describe('CheckpointAnnouncer', () => {
  test('logs each checkpoint once, and appends those of a round in one write', async () => {
    const { log, file, append, checkpoint, announcer, tenants } = await stage(2)
    for (const tenantId of tenants) await append(tenantId)
    await checkpoint()
    await checkpoint()
    await announcer.flush()
    assert.deepEqual(log.events(), [CHECKPOINT_EVENT, CHECKPOINT_EVENT])
    assert.deepEqual(file.writes.map(numbersIn), [[4, 4]])
    const logged = log.lines.map((it) => JSON.stringify({ event: it.event, ...it.fields }))
    assert.equal(file.writes[0], `${logged.join('\n')}\n`)
    await append(tenants[0]!)
    await checkpoint()
    await announcer.flush()
    assert.deepEqual(file.writes.map(numbersIn), [[4, 4], [5]])
  })

  test('logs a failure of the file once, and appends the newest checkpoints when it works again', async () => {
    const { log, file, append, checkpoint, announcer, tenants } = await stage(2)
    const [first, second] = [tenants[0]!, tenants[1]!]
    file.fails = true
    for (const tenantId of [first, second, first]) {
      await append(tenantId)
      await checkpoint()
      await announcer.flush()
    }
    assert.deepEqual(log.events(), [
      CHECKPOINT_EVENT,
      'audit_checkpoint_file_failed',
      CHECKPOINT_EVENT,
      CHECKPOINT_EVENT,
    ])
    file.fails = false
    await announcer.flush()
    assert.deepEqual(file.writes.map(numbersIn), [[5, 4]])
    assert.deepEqual(log.events().slice(4), ['audit_checkpoint_file_works'])
    await announcer.flush()
    assert.equal(file.writes.length, 1)
    for (const fails of [false, true]) {
      file.fails = fails
      await append(first)
      await checkpoint()
      await announcer.flush()
    }
    assert.deepEqual(log.events().slice(5), [
      CHECKPOINT_EVENT,
      CHECKPOINT_EVENT,
      'audit_checkpoint_file_failed',
    ])
  })

  test('does not hold checkpoints up while the file is written, and appends what came meanwhile', async () => {
    const { world, file, append, checkpoint, announcer, tenants } = await stage(1)
    const [tenantId] = [tenants[0]!]
    const { promise: held, resolve: release } = Promise.withResolvers<void>()
    file.held = held
    await append(tenantId)
    await checkpoint()
    const flushed = announcer.flush()
    await append(tenantId)
    await checkpoint()
    assert.equal((await world.store.auditLog.state(tenantId))?.checkpoint?.last.number, 5)
    release()
    await flushed
    assert.deepEqual(file.writes.map(numbersIn), [[4], [5]])
  })

  test('announces the checkpoints that are there, unless they are forged or their tenant is gone', async () => {
    const { world, log, file, announcer, tenants } = await stage(2)
    const [first, second] = [tenants[0]!, tenants[1]!]
    const { checkpoint } = (await world.store.auditLog.state(second))!
    const forged = { ...checkpoint!, proof: Uint8Array.of(1) }
    await world.store.commit(second, [{ kind: 'put-audit-checkpoint', checkpoint: forged }])
    await announcer.announceCurrent([first, second, '01945d00-0000-4000-8000-00000000000a'])
    assert.deepEqual(file.writes.map(numbersIn), [[3]])
    assert.deepEqual(
      log.lines.map((it) => it.fields['tenant']),
      [first],
    )
  })

  test('gets the last checkpoint of each audit log that retention has shortened', async () => {
    const { world, file, append, announcer, tenants } = await stage(1)
    await append(tenants[0]!)
    world.clock.pass(2 * DAY_MS)
    await append(tenants[0]!)
    await sweepAuditLogs(world, 1, announcer.announce)
    await sweepAuditLogs(world, 1, announcer.announce)
    await announcer.flush()
    assert.deepEqual(file.writes.map(numbersIn), [[5]])
    assert.match(file.writes[0]!, /"removed":4/)
  })
})

/** Returns the numbers of the events that the lines end with. */
function numbersIn(lines: string): number[] {
  assert.ok(lines.endsWith('\n'))
  return lines
    .trimEnd()
    .split('\n')
    .map((it) => {
      const line = parseCheckpointLine(it)
      assert.ok(line !== null && line !== 'unreadable')
      return line.number
    })
}

async function stage(count: number) {
  const log = Object.assign(new RememberingLog(), {
    events: () => log.lines.map((it) => it.event),
  })
  const world = { ...stillWorld(), log }
  const tenants: string[] = []
  for (let n = 0; n < count; n++) {
    world.clock.pass(1)
    const made = await setUp(world, thinKeyProvider(), { name: `${n}`, plan: 'enterprise' })
    tenants.push(made.tenantId)
  }
  const file = {
    path: '/elsewhere/checkpoints',
    writes: [] as string[],
    fails: false,
    held: Promise.resolve(),
    append: async (lines: string): Promise<void> => {
      await file.held
      if (file.fails) throw new Error('The disk is full')
      file.writes.push(lines)
    },
  }
  const announcer = new CheckpointAnnouncer(world, file)
  const append = async (tenantId: string): Promise<void> => {
    const events = [auditEventAt(world.clock.now())]
    await world.store.commit(tenantId, [{ kind: 'append-audit-events', events }])
  }
  const checkpoint = auditCheckpointer(world, announcer.announce)
  return { world, log, file, announcer, tenants, append, checkpoint }
}
