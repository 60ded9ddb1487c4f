/** Every example of docs/browser.md works when it is pasted. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { after, before, describe, test } from 'node:test'
import type { Browser, Route } from 'playwright-core'
import { lacksPrograms } from '../../server/test/kit/programs.ts'
import { readDocument } from '../../server/test/tidy/docs.ts'
import { openPage, type ShopPage } from './card-page.ts'
import { openChromium } from './chromium.ts'
import { NUMBER, openShop, type Shop } from './shop.ts'

const DOCUMENT = readDocument('docs/browser.md', 'card fields')

/** The fences of the page by their language, in order. */
const FENCES = Map.groupBy(
  [...DOCUMENT.matchAll(/^```(\w*)\n([^]*?)^```$/gm)].map(([, language, text]) => ({
    language: language!,
    text: text!,
  })),
  (it) => it.language,
)

describe('an example of docs/browser.md:', { skip: lacksPrograms('chromium', 'curl') }, () => {
  let shop: Shop
  let browser: Browser
  before(async () => {
    shop = await openShop()
    browser = await openChromium()
  })
  after(async () => {
    await browser.close()
    await shop.close()
  })

  test('the application', async () => {
    const output = runInShell(fence('sh', 0), {
      URL: shop.vault.url,
      KEY: shop.vault.managementKey,
    })
    const { type, allowed_origins } = JSON.parse(output) as Record<string, unknown>
    assert.deepEqual(
      { type, allowed_origins },
      { type: 'public', allowed_origins: ['https://shop.example'] },
    )
  })

  test('the page, and the looks', async () => {
    const paid = Promise.withResolvers<string>()
    const page = await openExample(fence('html', 0), '/pay', async (route) => {
      paid.resolve(route.request().postData()!)
      await route.fulfill({ status: 204 })
    })
    const frame = page.frameLocator('symbolon-card iframe')
    await frame.getByLabel('Card number').fill(NUMBER)
    await frame.getByLabel('Expiry date').fill('12/39')
    await frame.getByLabel('Security code').fill('123')
    await page.evaluate(`const card = document.querySelector('symbolon-card'); ${fence('js', 0)}`)
    await frame.locator('input >> nth=0').evaluate(async (input) => {
      const border = 'rgb(134, 142, 150)'
      while (getComputedStyle(input).borderTopColor !== border) {
        await new Promise(requestAnimationFrame)
      }
    })
    await page.getByRole('button', { name: 'Pay' }).click()
    const { token } = JSON.parse(await paid.promise) as { token: string }
    assert.equal(((await shop.stored(token)) as { number: string }).number, NUMBER)
    await page.close()
  })

  test('a stored card', async () => {
    const id = await shop.store({ number: NUMBER, expiration_month: 12, expiration_year: 2039 })
    const markup = fence('html', 1)
      .replace('(tokenId,', `('${id}',`)
      .replace('{ tokenId, nonce }', '{ nonce }')
    const page = await openExample(markup, '/reveal', async (route) => {
      const { nonce } = JSON.parse(route.request().postData()!) as { nonce: string }
      runInShell(fence('sh', 1), {
        URL: shop.vault.url,
        PRIVATE_KEY: shop.privateKey,
        NONCE: nonce,
        TOKEN: id,
      })
      await route.fulfill({ status: 204 })
    })
    await page.frameLocator('symbolon-reveal iframe').getByText('4242 4242 4242 4242').waitFor()
    await page.close()
  })

  test('the code of a stored card', async () => {
    const id = await shop.store({ number: NUMBER, expiration_month: 12, expiration_year: 2039 })
    const markup = fence('html', 2)
      .replace('{ tokenId, nonce }', '{ nonce }')
      .replace('update(tokenId,', `update('${id}',`)
    const page = await openExample(`<form>${markup}</form>`, '/authorize-update', async (route) => {
      const { nonce } = JSON.parse(route.request().postData()!) as { nonce: string }
      runInShell(fence('sh', 2), {
        URL: shop.vault.url,
        PRIVATE_KEY: shop.privateKey,
        NONCE: nonce,
        TOKEN: id,
      })
      await route.fulfill({ status: 204 })
    })
    await page.evaluate(() => document.addEventListener('submit', (it) => it.preventDefault()))
    const code = page.frameLocator('iframe').getByLabel('Security code')
    await code.fill('987')
    const updated = page.waitForResponse((it) => it.request().method() === 'PATCH')
    await code.press('Enter')
    assert.equal((await updated).status(), 200)
    assert.equal(((await shop.stored(id)) as { cvc: string }).cvc, '987')
    await page.close()
  })

  test('the policy of a strict page', async () => {
    const policy = fence('', 1)
    const [, value] = /^Content-Security-Policy: (.+)$/m.exec(policy)!
    const html = `<!doctype html><title>Shop</title>
      <script type="module" nonce="n" src="${shop.vaultOrigin}/fields/v1/fields.js" crossorigin></script>
      <symbolon-card public-key="${shop.publicKey}"></symbolon-card>`
    const headers = {
      'content-security-policy': inShop(value!).replace("'nonce-...'", "'nonce-n'"),
      'cross-origin-embedder-policy': 'require-corp',
    }
    const page = await openPage(browser, shop.serve(html, headers))
    await page.frameLocator('iframe').getByLabel('Card number').fill(NUMBER)
    const complaints = page.complaints.filter((it) => !it.includes('favicon'))
    assert.deepEqual(complaints, [])
    await page.close()
  })

  /** Opens a page with the markup of an example, whose backend is `answer`. */
  async function openExample(
    markup: string,
    path: string,
    answer: (route: Route) => Promise<void>,
  ): Promise<ShopPage> {
    const script = `<script type="module" src="${shop.vaultOrigin}/fields/v1/fields.js"></script>`
    const html = markup.includes('fields.js') ? inShop(markup) : script + inShop(markup)
    const page = await openPage(browser, 'about:blank')
    await page.route(`**${path}`, answer)
    await page.goto(shop.serve(`<!doctype html><title>Shop</title>${html}`))
    return page
  }

  /** Replaces the names of the page by those of this run. */
  function inShop(text: string): string {
    return text
      .replaceAll('https://vault.example', shop.vaultOrigin)
      .replaceAll('key_local_pub_...', shop.publicKey)
  }
})

function fence(language: string, place: number): string {
  const found = FENCES.get(language)?.[place]
  assert.ok(found !== undefined, `no ${language} example ${place}`)
  return found.text
}

function runInShell(script: string, variables: Readonly<Record<string, string>>): string {
  const { stdout, stderr, status } = spawnSync('sh', ['-ec', script], {
    encoding: 'utf8',
    env: { ...process.env, ...variables },
  })
  assert.equal(status, 0, stderr)
  return stdout
}
