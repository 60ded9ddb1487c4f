/** Card fields in Chromium, on a page of another origin than the vault's. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Browser, FrameLocator, Page } from 'playwright-core'
import { openChromium, openPage } from './chromium.ts'
import { NUMBER, openShop, type Shop } from './shop.ts'

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

/** Opens a page with `markup`, in which `KEY` is the public key, and waits until its elements are ready. */
async function open(markup: string): Promise<Page & { readonly complaints: string[] }> {
  const page = await openPage(
    browser,
    shop.serve(`<!doctype html><html lang="en"><title>Shop</title><link rel="icon" href="data:,">
      <script type="module" src="${shop.vaultOrigin}/fields/v1/fields.js"></script>
      ${markup.replaceAll('KEY', `public-key="${shop.publicKey}"`)}`),
  )
  await page.evaluate(async () => {
    const elements = [
      ...document.querySelectorAll(
        'symbolon-card, symbolon-group, symbolon-field, symbolon-text, symbolon-reveal',
      ),
    ]
    await Promise.all(elements.map((it) => customElements.whenDefined(it.localName)))
    await Promise.all(elements.map((it) => (it as never as { ready: Promise<void> }).ready))
  })
  return page
}

/** Calls a method of the first element that `selector` finds. */
async function call(
  page: Page,
  selector: string,
  method: string,
  ...values: unknown[]
): Promise<any> {
  return await page.evaluate(
    async ([selector, method, values]) => {
      try {
        return await (document.querySelector(selector) as any)[method](...values)
      } catch (error) {
        const { code, status, detail, errors } = error as any
        return { thrown: code ?? String(error), status, detail, errors }
      }
    },
    [selector, method, values] as const,
  )
}

test('a card is typed in one iframe, and becomes a token', async () => {
  const page = await open('<symbolon-card KEY></symbolon-card>')
  await fill(page.frameLocator('iframe'))
  const token = await call(page, 'symbolon-card', 'tokenize', { metadata: { order: '17' } })
  assert.equal(token.type, 'card', JSON.stringify(token))
  assert.deepEqual(page.complaints, [])
  await page.close()
})

test('a card is typed in iframes of its own, and becomes a token', async () => {
  const page = await open(`<symbolon-group KEY>
    <symbolon-field name="number"></symbolon-field>
    <symbolon-field name="expiry"></symbolon-field>
    <symbolon-field name="cvc"></symbolon-field></symbolon-group>`)
  const early = await call(page, 'symbolon-group', 'tokenize')
  assert.equal(early.thrown, 'incomplete')
  await page
    .frameLocator('[name=number] iframe')
    .getByLabel('Card number')
    .pressSequentially(NUMBER)
  await page
    .frameLocator('[name=expiry] iframe')
    .getByLabel('Expiry date')
    .pressSequentially('1231')
  await page.frameLocator('[name=cvc] iframe').getByLabel('Security code').pressSequentially('123')
  const token = await call(page, 'symbolon-group', 'tokenize')
  assert.equal(token.type, 'card', JSON.stringify(token))
  assert.deepEqual(page.complaints, [])
  await page.close()
})

test('a text is typed, and becomes a token', async () => {
  const page = await open('<symbolon-text KEY label="IBAN"></symbolon-text>')
  await page.frameLocator('iframe').getByLabel('IBAN').fill('DE02120300000000202051')
  const token = await call(page, 'symbolon-text', 'tokenize')
  assert.equal(token.type, 'token', JSON.stringify(token))
  await page.close()
})

test('a stored card is shown to its owner', async () => {
  const stored = await shop.call(shop.privateKey, 'POST', '/tokens', {
    type: 'card',
    data: { number: NUMBER, expiration_month: 12, expiration_year: 2031 },
  })
  const id = stored.body['id'] as string
  const page = await open('<symbolon-reveal KEY></symbolon-reveal>')
  await page.exposeFunction('authorize', async (nonce: string) => {
    const reply = await shop.call(shop.privateKey, 'POST', '/sessions/authorize', {
      nonce,
      rules: [
        {
          description: 'owner',
          priority: 1,
          transform: 'reveal',
          permissions: ['token:read'],
          conditions: [{ attribute: 'id', operator: 'equals', value: id }],
        },
      ],
    })
    if (reply.status !== 200) throw new Error(JSON.stringify(reply))
  })
  await page.evaluate(async (id) => {
    await (document.querySelector('symbolon-reveal') as any).reveal(
      id,
      (globalThis as any).authorize,
    )
  }, id)
  const shown = page.frameLocator('iframe').getByText('4242 4242 4242 4242')
  await shown.waitFor()
  await page.screenshot({ path: '/tmp/reveal.png' })
  await page.close()
})

async function fill(frame: FrameLocator): Promise<void> {
  await frame.getByLabel('Card number').pressSequentially(NUMBER)
  await frame.getByLabel('Expiry date').pressSequentially('1231')
  await frame.getByLabel('Security code').pressSequentially('123')
}
