/** Tests that no reactor runs as root, wherever the service is installed. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { noBubblewrap } from '../../kit/bubblewrap.ts'
import { closedInstallation } from '../../kit/readable-installation.ts'

/** Tells its user, and whether the packages work that are below the closed folder as well. */
const CODE = `module.exports = () => {
  const names = ['axios', 'lodash', 'pdf-lib', 'xmlbuilder2', 'node-fetch']
  return [process.getuid(), names.map((it) => typeof require(it)).sort().join()]
}`

for (const level of ['jail', 'hardened']) {
  const skip = level === 'hardened' && noBubblewrap()
  test(
    `at the level ${level}, a service of root below a closed folder gives each reactor a user of its own`,
    { skip },
    (t) => {
      const { node, probe } = closedInstallation(t)
      const env = { LEVEL: level }
      const child = spawnSync(node, [probe, CODE], { encoding: 'utf8', env })
      const { kind, result } = JSON.parse(child.stdout)
      assert.equal(kind, 'returned', child.stdout + child.stderr)
      const [user, types] = result
      assert.equal(types, 'function,function,function,object,object')
      if (process.getuid!() === 0) assert.ok(user >= 0x70000000, `it runs as ${user}`)
      else assert.equal(user, process.getuid!())
    },
  )
}
