/** The package `@symbolon/fields`, as a shop with a bundler uses it. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { after, before, describe, test } from 'node:test'
import { build } from 'esbuild'
import { lacksPrograms } from '../../server/test/kit/programs.ts'
import { openPage } from './card-page.ts'
import { openChromium } from './chromium.ts'
import { openShop } from './shop.ts'

const HOME = path.join(import.meta.dirname, '..')
const TSC = fileURLToPath(new URL('bin/tsc', import.meta.resolve('typescript/package.json')))

const CHECKOUT = `import { loadFields, type FieldsState, type FieldsToken } from '@symbolon/fields'

export async function mount(src: string, key: string): Promise<() => Promise<FieldsToken>> {
  await loadFields(src, { nonce: 'n' })
  const card = document.createElement('symbolon-card')
  card.setAttribute('public-key', key)
  card.styles = { input: { color: '#222' } }
  card.addEventListener('change', (event) => {
    const state: FieldsState = (event as CustomEvent<FieldsState>).detail
    document.title = state.brand ?? ''
  })
  document.body.append(card)
  await card.ready
  return () => card.tokenize({ metadata: { order: '17' } })
}
`

const OPTIONS_OF_SHOP = [
  '--strict',
  '--noEmit',
  '--module',
  'preserve',
  '--target',
  'es2022',
].concat(['--lib', 'es2024,dom,dom.iterable'])

describe('the npm package', () => {
  const project = mkdtempSync(path.join(tmpdir(), 'symbolon-npm-'))
  const installed = path.join(project, 'node_modules/@symbolon/fields')
  before(() => {
    mkdirSync(installed, { recursive: true })
    cpSync(path.join(HOME, 'package.json'), path.join(installed, 'package.json'))
    run(HOME, ['-p', 'tsconfig.npm.json', '--outDir', path.join(installed, 'dist/npm')])
    writeFileSync(path.join(project, 'checkout.ts'), CHECKOUT)
    writeFileSync(path.join(project, 'package.json'), '{ "type": "module" }')
  })
  after(() => rmSync(project, { recursive: true }))

  test('has types for the loader, the elements and their events', () => {
    run(project, [...OPTIONS_OF_SHOP, 'checkout.ts'])
  })

  test('refuses a use that the elements do not have', () => {
    writeFileSync(
      path.join(project, 'wrong.ts'),
      CHECKOUT.replace("color: '#222'", "display: 'none'"),
    )
    assert.throws(() => run(project, [...OPTIONS_OF_SHOP, 'wrong.ts']), /display/)
  })

  test(
    'loads the script into a page that requires Trusted Types',
    { skip: lacksPrograms('chromium') },
    async () => {
      const { outputFiles } = await build({
        entryPoints: [path.join(project, 'checkout.ts')],
        bundle: true,
        format: 'iife',
        globalName: 'checkout',
        write: false,
      })
      const shop = await openShop()
      const browser = await openChromium()
      const url = shop.serve(
        `<!doctype html><title>Shop</title><link rel="icon" href="data:,"><body>
        <script nonce="n">${outputFiles[0]!.text}</script></body>`,
        {
          'content-security-policy':
            `default-src 'none'; img-src data:; script-src 'nonce-n'; frame-src ${shop.vaultOrigin}; ` +
            "require-trusted-types-for 'script'; trusted-types symbolon-fields",
        },
      )
      const page = await openPage(browser, url)
      await page.evaluate(
        async ([src, key]) => {
          const { mount } = (globalThis as unknown as { checkout: { mount: Mount } }).checkout
          await mount(src, key)
        },
        [`${shop.vaultOrigin}/fields/v1/fields.js`, shop.publicKey] as const,
      )
      await page.frameLocator('iframe').getByLabel('Card number').waitFor()
      const refused = await page.evaluate(async () => {
        const { mount } = (globalThis as unknown as { checkout: { mount: Mount } }).checkout
        return await mount('https://evil.example/fields.js', 'key').catch(String)
      })
      assert.match(String(refused), /is not the URL of card fields/)
      assert.deepEqual(page.complaints, [])
      await browser.close()
      await shop.close()
    },
  )
})

type Mount = (src: string, key: string) => Promise<unknown>

/** Runs the TypeScript compiler in a folder, and throws its output if it fails. */
function run(cwd: string, words: readonly string[]): void {
  const { status, stdout } = spawnSync(process.execPath, [TSC, ...words], { cwd, encoding: 'utf8' })
  if (status !== 0) throw new Error(stdout)
}
