/** Card fields in a real browser, on a page of another origin than the vault's. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { chromium, type Browser, type Page } from 'playwright-core'
import { NUMBER, openShop, type Shop } from './shop.ts'

describe('a card', () => {
  let shop: Shop
  let browser: Browser
  before(async () => {
    shop = await openShop()
    browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] })
  })
  after(async () => {
    await browser.close()
    await shop.close()
  })

  async function open(attributes = ''): Promise<Page> {
    const page = await browser.newPage()
    page.on('console', (it) => console.log(it.text()))
    page.on('pageerror', (it) => console.log(it))
    await page.goto(
      shop.serve(`<!doctype html><title>Shop</title>
        <script type="module" src="${shop.vaultOrigin}/fields/v1/fields.js"></script>
        <symbolon-card public-key="${shop.publicKey}" ${attributes}></symbolon-card>`),
    )
    return page
  }

  test('is typed, and becomes a token', async () => {
    const page = await open()
    await page.evaluate(async () => {
      await customElements.whenDefined('symbolon-card')
      await (document.querySelector('symbolon-card') as any).ready
    })
    const frame = page.frameLocator('iframe')
    await frame.getByLabel('Card number').pressSequentially(NUMBER)
    await frame.getByLabel('Expiry date').pressSequentially('1231')
    await frame.getByLabel('Security code').pressSequentially('123')
    await page.screenshot({ path: '/tmp/card.png' })
    const token = await page.evaluate(
      async () => await (document.querySelector('symbolon-card') as any).tokenize(),
    )
    console.log(
      token,
      await page.evaluate(() => (document.querySelector('symbolon-card') as any).state),
    )
    assert.equal(token.type, 'card')
    await page.close()
  })
})
