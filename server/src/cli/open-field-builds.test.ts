import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { after, describe, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { openFieldBuilds } from './open-field-builds.ts'

const CURRENT = 'aaaaaaaaaaaaaaaa'
const RELEASED = 'bbbbbbbbbbbbbbbb'

describe('openFieldBuilds()', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'symbolon-builds-'))
  after(() => rmSync(folder, { recursive: true }))
  const builder = `export const currentBuild = async () => ({ folder: '', hash: '${CURRENT}' })`
  const workspace = write('workspace', {
    'build.ts': builder,
    [`dist/v1/${CURRENT}/fields.js`]: 'current',
    [`released/v1/${RELEASED}/fields.js`]: 'released',
    'released/v1/secret/fields.js': 'no build',
  })
  const nothing = new URL('none/', pathToFileURL(`${folder}/`))

  test('in a checkout has the build of the sources, and those of earlier releases', async () => {
    const builds = openFieldBuilds({ error: assert.fail }, { packaged: nothing, workspace })
    assert.equal(await builds.current(), CURRENT)
    assert.equal(String((await builds.read(CURRENT, 'fields.js'))?.content), 'current')
    const released = await builds.read(RELEASED, 'fields.js')
    assert.equal(String(gunzipSync(released!.gzipped)), 'released')
  })

  test('in a package has what was built with it', async () => {
    const packaged = write('packaged', {
      'v1/current': `${RELEASED}\n`,
      [`v1/${RELEASED}/fields.js`]: 'packaged',
      [`v1/${CURRENT}/fields.js`]: 'earlier',
    })
    const builds = openFieldBuilds({ error: assert.fail }, { packaged, workspace: nothing })
    assert.equal(await builds.current(), RELEASED)
    assert.equal(String((await builds.read(RELEASED, 'fields.js'))?.content), 'packaged')
    assert.equal(String((await builds.read(CURRENT, 'fields.js'))?.content), 'earlier')
  })

  test('reads no other files', async () => {
    const builds = openFieldBuilds({ error: assert.fail }, { packaged: nothing, workspace })
    for (const [build, file] of [
      ['secret', 'fields.js'],
      ['..', 'fields.js'],
      [CURRENT, '../../../build.ts'],
      [CURRENT, 'constructor'],
      [CURRENT, 'frame.js'],
      [CURRENT.toUpperCase(), 'fields.js'],
    ] as const) {
      assert.equal(await builds.read(build, file), null, `${build}/${file}`)
    }
  })

  test('reports a build that failed, and has none', async () => {
    const broken = write('broken', {
      'build.ts': `export const currentBuild = async () => { throw new Error('no esbuild') }`,
    })
    const reported: string[] = []
    const builds = openFieldBuilds(
      { error: (event, error) => void reported.push(`${event}: ${(error as Error).message}`) },
      { packaged: nothing, workspace: broken },
    )
    assert.equal(await builds.current(), null)
    assert.deepEqual(reported, ['card_fields_not_built: no esbuild'])
  })

  function write(name: string, files: Readonly<Record<string, string>>): URL {
    for (const [file, text] of Object.entries(files)) {
      mkdirSync(path.dirname(path.join(folder, name, file)), { recursive: true })
      writeFileSync(path.join(folder, name, file), text)
    }
    return pathToFileURL(`${path.join(folder, name)}/`)
  }
})
