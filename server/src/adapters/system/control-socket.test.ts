import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { findListener, giveOrder, takeOrders } from './control-socket.ts'

test('an order arrives, and what is said about it comes back in order', async (t) => {
  for (const folder of [temporaryFolder(t), join(temporaryFolder(t), 'long'.repeat(30))]) {
    mkdirSync(folder, { recursive: true })
    const heard: unknown[] = []
    const orders = await takeOrders(folder, async (order, report) => {
      report({ order })
      report({ n: 2 })
    })
    assert.equal(statSync(join(folder, 'symbolon.sock')).mode & 0o777, 0o600)
    assert.equal(await giveOrder(folder, { do: 'it' }, (it) => heard.push(it)), true)
    assert.deepEqual(heard, [{ order: { do: 'it' } }, { n: 2 }])
    await orders.close()
    assert.ok(!existsSync(join(folder, 'symbolon.sock')))
  }
})

test('giveOrder() throws what could not be done, and when the service goes away meanwhile', async (t) => {
  const folder = temporaryFolder(t)
  const { promise: never } = Promise.withResolvers<void>()
  const orders = await takeOrders(folder, async (order, report) => {
    if (order === null) throw new Error('not that')
    report({})
    await never
  })
  await assert.rejects(
    giveOrder(folder, null as unknown as object, () => {}),
    /not that/,
  )
  const left = giveOrder(folder, {}, () => void orders.close())
  await assert.rejects(left, /The service stopped/)
})

test('giveOrder() is false where no server listens, also after one that was killed', async (t) => {
  const folder = temporaryFolder(t)
  assert.equal(await giveOrder(folder, {}, () => {}), false)
  const orders = await takeOrders(folder, async () => {})
  await orders.close()
  assert.equal(await giveOrder(folder, {}, () => {}), false)
})

test('findListener() tells a running service from none and from a killed one, and sends it no order', async (t) => {
  for (const folder of [temporaryFolder(t), join(temporaryFolder(t), 'long'.repeat(30))]) {
    mkdirSync(folder, { recursive: true })
    assert.equal(await findListener(folder), 'absent')
    let orders = 0
    const service = await takeOrders(folder, async () => void orders++)
    assert.equal(await findListener(folder), 'listening')
    assert.equal(await giveOrder(folder, {}, () => {}), true)
    assert.equal(orders, 1)
    await service.close()
    // A killed service leaves its socket; a file refuses connections as well.
    writeFileSync(join(folder, 'symbolon.sock'), '')
    assert.equal(await findListener(folder), 'abandoned')
  }
})

function temporaryFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'symbolon-orders-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
