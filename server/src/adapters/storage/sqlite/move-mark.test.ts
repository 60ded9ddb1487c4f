import assert from 'node:assert/strict'
import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { freshFolder, openStore } from '../../../../test/kit/sqlite-kit.ts'
import { readMoveMark, writeMoveMark } from './move-mark.ts'

test('a mark is read as it was written, last, and leaves nothing beside it', (t) => {
  const folder = freshFolder(t)
  assert.equal(readMoveMark(folder), null)
  for (const finished of [false, true]) {
    writeMoveMark(folder, { id: 'a', finished })
    assert.deepEqual(readMoveMark(folder), { id: 'a', finished })
  }
  assert.deepEqual(readdirSync(folder), ['symbolon.moved'])
})

test('a store is not opened in a folder with a mark, whatever it says, and is when that is gone', async (t) => {
  const folder = freshFolder(t)
  await (await openStore(t, { folder })).close()
  writeMoveMark(folder, { id: 'a', finished: false })
  await assert.rejects(openStore(t, { folder }), /on its way to a PostgreSQL database/)
  writeMoveMark(folder, { id: 'a', finished: true })
  await assert.rejects(openStore(t, { folder }), /was moved to a PostgreSQL database/)
  for (const text of ['', '{', 'null', '{"move":1,"finished":true}', '{"move":"a"}']) {
    writeFileSync(join(folder, 'symbolon.moved'), text)
    await assert.rejects(openStore(t, { folder }), /symbolon\.moved in it is not what this program/)
  }
  rmSync(join(folder, 'symbolon.moved'))
  await openStore(t, { folder })
})
