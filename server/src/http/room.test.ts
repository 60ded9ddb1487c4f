import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { describe, test } from 'node:test'
import type { Principal } from '../base/access.ts'
import { LONG_BYTES_MIN, READS_LONG_AT_ONCE, SHARE_BYTES_MAX } from '../base/limits.ts'
import { memoryOf, Room, type Memory } from './room.ts'

const OWNER = 'tenant private'

describe('Room.takeLong()', () => {
  test('is for a few at a time, and given back when the request is handled', async () => {
    const memory = still()
    const rooms = Array.from({ length: READS_LONG_AT_ONCE }, () => roomIn(memory).room)
    for (const it of rooms) await it.takeLong(false)
    const late = roomIn(memory).room
    const taken = late.takeLong(false)
    assert.equal(await isSettled(taken), false)
    rooms[0]!.handled()
    await taken
    for (const it of [...rooms, late]) it.handled()
    assert.equal(memory.long.isTaken(OWNER), false)
  })

  test('comes to nothing once the request is handled, whether it waited or not', async () => {
    const memory = still()
    const rooms = Array.from({ length: READS_LONG_AT_ONCE }, () => roomIn(memory).room)
    for (const it of rooms) await it.takeLong(false)
    const waiting = roomIn(memory).room
    const taken = waiting.takeLong(false)
    waiting.handled()
    for (const it of rooms) it.handled()
    await taken
    await rooms[0]!.takeLong(false)
    assert.equal(memory.long.isTaken(OWNER), false)
  })

  test('is one turn, however often it is asked for at once', async () => {
    const memory = still()
    const rooms = Array.from({ length: READS_LONG_AT_ONCE }, () => roomIn(memory).room)
    for (const it of rooms) await it.takeLong(false)
    const { room } = roomIn(memory)
    const taken = [room.takeLong(false), room.takeLong(false), room.takeLong(true)]
    for (const it of rooms) it.handled()
    await Promise.all(taken)
    room.handled()
    assert.equal(memory.long.isTaken(OWNER), false)
  })

  test('waits for what others made only where it makes something for a destination itself', async () => {
    const memory = still()
    const sender = roomIn(memory)
    await sender.room.takeLong(true)
    sender.room.endLong(SHARE_BYTES_MAX + 1)
    await roomIn(memory).room.takeLong(false)
    const taken = roomIn(memory).room.takeLong(true)
    assert.equal(await isSettled(taken), false)
    sender.room.handled()
    sender.response.emit('close')
    await taken
    assert.equal(memory.made.isTaken(OWNER), false)
  })

  test('keeps nothing of what is made when nobody is there any more', async () => {
    const memory = still()
    const { room, response } = roomIn(memory)
    await room.takeLong(true)
    room.handled()
    response.emit('close')
    room.endLong(LONG_BYTES_MIN)
    assert.equal(memory.made.isTaken(OWNER), false)
    assert.equal(memory.long.isTaken(OWNER), false)
  })
})

/** Nobody in it runs out of patience. */
function still(): Memory {
  return memoryOf({ after: () => new Promise(() => {}) })
}

function roomIn(memory: Memory): { readonly room: Room; readonly response: EventEmitter } {
  const response = Object.assign(new EventEmitter(), { closed: false })
  const principal = { tenantId: 'tenant', type: 'private' } as Principal
  return { room: new Room(memory, response as unknown as ServerResponse, principal), response }
}

/** Whether it is, as soon as nothing is left to be done that waits for nobody. */
async function isSettled(promise: Promise<void>): Promise<boolean> {
  let settled = false
  void promise.then(() => (settled = true))
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
  return settled
}
