/** `npm run test:switchovers -- --patroni` runs what this page says, where the programs are installed. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { patroniRecipe } from '../switchovers/patroni-recipe.ts'

test('the files of the failover page work on one machine: every host in them is known', () => {
  const { members, haproxy, sql } = patroniRecipe('/folder', {
    etcd: 10_001,
    haproxy: 10_002,
    postgres: { db1: 10_011, db2: 10_012 },
    rest: { db1: 10_021, db2: 10_022 },
  })
  for (const text of [members.db1, members.db2, haproxy]) assert.doesNotMatch(text, /10\.0\.0\./)
  assert.match(members.db2, /name: db2[^]*listen: 127\.0\.0\.1:10022[^]*listen: 127\.0\.0\.1:10012/)
  assert.match(members.db2, /data_dir: \/folder\/db2\/data/)
  assert.match(haproxy, /db1 127\.0\.0\.1:10011 check port 10021\n/)
  assert.match(haproxy, /db2 127\.0\.0\.1:10012 check port 10022\n/)
  assert.equal(sql.length, 2)
})
