/** Pages that may not embed fields, keys and sessions that they may not use, and a page as strict as pages can be. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import type { Browser, Frame, Page } from 'playwright-core'
import { lacksPrograms } from '../../server/test/kit/programs.ts'
import { call, ELEMENTS, markupOf, openPage, openShopPage } from './card-page.ts'
import { openChromium } from './chromium.ts'
import { ATTEMPTS } from './hostile-attempts.ts'
import { hostileScript, type HostilePage } from './hostile-tools.ts'
import { openShop, type Shop } from './shop.ts'

const NUMBER = '4916038725197649'

const CARD = '<symbolon-card KEY></symbolon-card>'
const GROUP = `<symbolon-group KEY>
  <symbolon-field name="number"></symbolon-field>
  <symbolon-field name="expiry"></symbolon-field>
  <symbolon-field name="cvc"></symbolon-field>
</symbolon-group>`
const REVEAL = '<symbolon-reveal KEY></symbolon-reveal>'

/** Has elements of a page wait for the load event of their iframe without end, and after it a tenth of the time. */
const LOAD_AWAITED = `<script>
  const start = setTimeout
  window.setTimeout = (call, ms) => (ms === 30_000 ? 0 : start(call, ms / 10))
</script>`

describe('card fields', { skip: lacksPrograms('chromium') }, () => {
  let shop: Shop
  let browser: Browser
  let buildUrl: string
  before(async () => {
    shop = await openShop()
    browser = await openChromium()
    const { url } = await fetch(`${shop.vault.url}/fields/v1/fields.js`)
    buildUrl = new URL('.', url.replace(shop.vault.url, shop.vaultOrigin)).href
  })
  after(async () => {
    await browser.close()
    await shop.close()
  })

  describe('are not mounted', { concurrency: true }, () => {
    for (const [layout, markup] of Object.entries({ card: CARD, group: GROUP, reveal: REVEAL })) {
      test(`by a page of another origin: ${layout}`, async () => {
        const page = await openPage(
          browser,
          foreign(shop.serve(markupOf(shop, LOAD_AWAITED + markup))),
        )
        await assertNotEmbedded(page)
        await page.close()
      })
    }

    test('by a page within a page of another origin', async () => {
      const inner = shop.serve(markupOf(shop, LOAD_AWAITED + CARD))
      const outer = foreign(shop.serve(`<iframe src="${inner}"></iframe>`))
      const page = await openPage(browser, outer)
      await assertNotEmbedded(await childOf(page.mainFrame()))
      await page.close()
    })

    test('by a page of another origin within a page of theirs', async () => {
      const inner = foreign(shop.serve(forgingPage(shop.publicKey)))
      const page = await openPage(browser, shop.serve(`<iframe src="${inner}"></iframe>`))
      assert.deepEqual(await forgedMessages(await childOf(page.mainFrame())), [])
      await page.close()
    })

    test('by the key of a private application', async () => {
      const page = await openPage(
        browser,
        shop.serve(markupOf(shop, LOAD_AWAITED + CARD, shop.privateKey)),
      )
      await assertNotEmbedded(page)
      await page.close()
    })

    test('by the key of a public application that lists no origins', async () => {
      const key = await shop.createKey({
        name: 'Without origins',
        type: 'public',
        permissions: ['token:create'],
      })
      const page = await openPage(browser, shop.serve(markupOf(shop, LOAD_AWAITED + CARD, key)))
      await assertNotEmbedded(page)
      await page.close()
    })

    test("by a page whose own policy does not allow the vault's iframes", async () => {
      const policy = { 'content-security-policy': "frame-src 'none'" }
      const page = await openPage(browser, shop.serve(markupOf(shop, LOAD_AWAITED + CARD), policy))
      await assertNotEmbedded(page)
      await page.close()
    })

    test('by a page with a sandbox, which has no origin', async () => {
      const sandbox = { 'content-security-policy': 'sandbox allow-scripts' }
      const page = await openPage(browser, shop.serve(markupOf(shop, LOAD_AWAITED + CARD), sandbox))
      assert.equal((await errorOf(page)).code, 'origin_opaque')
      await page.close()
    })

    test('by an iframe with a sandbox, which has no origin', async () => {
      const inner = shop.serve(markupOf(shop, LOAD_AWAITED + CARD))
      const outer = `<iframe sandbox="allow-scripts" src="${inner}"></iframe>`
      const page = await openPage(browser, shop.serve(outer))
      assert.equal((await errorOf(await childOf(page.mainFrame()))).code, 'origin_opaque')
      await page.close()
    })
  })

  test('are mounted by a page of theirs within a page of theirs', async () => {
    const inner = shop.serve(markupOf(shop, CARD))
    const page = await openPage(browser, shop.serve(`<iframe src="${inner}"></iframe>`))
    const child = page.frameLocator('iframe').frameLocator('iframe')
    await child.getByLabel('Card number').fill(NUMBER)
    await page.close()
  })

  describe('do not answer a handshake', () => {
    test('of a page of another origin that names one of theirs', async () => {
      const page = await openPage(browser, foreign(shop.serve(forgingPage(shop.publicKey))))
      assert.deepEqual(await forgedMessages(page.mainFrame()), [])
      await page.close()
    })

    test('of a page of theirs that names another origin', async () => {
      const named = foreign(shop.origin)
      const page = await openPage(browser, shop.serve(forgingPage(shop.publicKey, named)))
      assert.deepEqual(await forgedMessages(page.mainFrame()), [])
      await page.close()
    })

    test('of a page with a part of a nonce', async () => {
      const page = await openPage(
        browser,
        shop.serve(forgingPage(shop.publicKey, shop.origin, 'short')),
      )
      assert.deepEqual(await forgedMessages(page.mainFrame()), [])
      await page.close()
    })

    test('but one of a page of theirs: so the forging page works', async () => {
      const page = await openPage(browser, shop.serve(forgingPage(shop.publicKey)))
      const messages = await forgedMessages(page.mainFrame(), 1)
      assert.deepEqual(messages, [{ symbolon: 'hello', nonce: NONCE }])
      await page.close()
    })

    for (const whose of ['another origin', 'theirs']) {
      test(`of a page of ${whose} that opens their document in a window`, async () => {
        const url = shop.serve('<title>Opener</title>')
        const page = await openPage(browser, whose === 'theirs' ? url : foreign(url))
        const opened = page.waitForEvent('popup')
        const target = documentUrl(shop.publicKey, shop.origin)
        await page.evaluate((target) => {
          const seen: unknown[] = []
          addEventListener('message', ({ data }) => seen.push(data))
          Object.assign(window, { seen, popup: open(target) })
        }, target)
        const popup = await opened
        await popup.waitForLoadState()
        const seen = await page.evaluate(async (nonce) => {
          const { seen, popup } = window as unknown as { seen: unknown[]; popup: Window }
          const { port1, port2 } = new MessageChannel()
          port1.onmessage = ({ data }) => seen.push(data)
          popup.postMessage({ symbolon: 'connect', nonce }, '*', [port2])
          port1.postMessage({ type: 'configure', configuration: {} })
          await new Promise((resolve) => setTimeout(resolve, 200))
          return seen
        }, NONCE)
        assert.deepEqual(seen, [])
        assert.equal(await popup.locator('body > *').count(), 0)
        await popup.close()
        await page.close()
      })
    }
  })

  test('do not lend their key to a page of another origin', async () => {
    const url = shop.serve('<title>Page</title>')
    const post = async (page: Page): Promise<unknown> =>
      await page.evaluate(
        async ([vault, key, number]) => {
          const response = await fetch(`${vault}/tokens`, {
            method: 'POST',
            headers: { 'BT-API-KEY': key!, 'Content-Type': 'application/json' },
            body: JSON.stringify({ type: 'card', data: { number } }),
          })
          const { code } = (await response.json()) as { code?: string }
          return [response.status, code]
        },
        [shop.vaultOrigin, shop.publicKey, NUMBER],
      )
    const page = await openPage(browser, foreign(url))
    assert.deepEqual(await post(page), [403, 'origin_not_allowed'])
    await page.goto(url)
    assert.deepEqual(await post(page), [201, undefined])
    await page.close()
  })

  describe('that show a stored card', () => {
    let id: string
    before(async () => {
      id = await shop.store({ number: NUMBER, expiration_month: 11, expiration_year: 2047 })
    })

    test('give the page a nonce, and nothing else by any hook', async () => {
      const hooks = ATTEMPTS.filter((it) => it.alone !== true)
      const html = markupOf(shop, `${REVEAL}<p id="drop">Drop here</p>`).replace(
        '<title>',
        `<script>${hostileScript(hooks)}</script><title>`,
      )
      const page = await openPage(browser, shop.serve(html))
      const nonce = await reveal(page, id)
      const frame = page.frameLocator('iframe')
      const shown = frame.getByText('4916 0387 2519 7649')
      await shown.waitFor()
      await frame.getByRole('button').click()
      // Chromium does not let a buyer drop text on a page of another origin. Other browsers may.
      const dragged = await shown.evaluate((it) =>
        it.dispatchEvent(new DragEvent('dragstart', { bubbles: true, cancelable: true })),
      )
      assert.equal(dragged, false)
      // As a buyer does who selects the number and drags it over the page.
      await shown.evaluate((it) => getSelection()!.selectAllChildren(it))
      const from = (await shown.boundingBox())!
      const to = (await page.locator('#drop').boundingBox())!
      await page.mouse.move(from.x + 20, from.y + from.height / 2)
      await page.mouse.down()
      await page.mouse.move(to.x + 20, to.y + 2, { steps: 4 })
      await page.mouse.move(to.x + 24, to.y + 4)
      await page.mouse.up()
      const inPage = await page.context().newCDPSession(page)
      const evaluate = async (expression: string): Promise<unknown> => {
        const options = { expression, awaitPromise: true, returnByValue: true }
        return (await inPage.send('Runtime.evaluate', options)).result.value
      }
      for (const { name, later } of hooks) {
        if (later !== undefined) await evaluate(`hostilePage.later(${JSON.stringify(name)})`)
      }
      const seen = (await evaluate('hostilePage.seen()')) as ReturnType<HostilePage['seen']>
      const text = JSON.stringify(seen)
      assert.ok(text.includes(nonce), 'the hooks saw nothing at all')
      assert.doesNotMatch(text.replaceAll(/(?<=\d) (?=\d)/g, ''), /4916038|0387251|7251976|5197649/)
      assert.doesNotMatch(text, /key_local_sess_|session_key/)
      await page.close()
    })

    test('let the page see a click on the button, and not the clipboard', async () => {
      const page = await openShopPage(browser, shop, REVEAL)
      await reveal(page, id)
      await page.evaluate(() => {
        const overlay = document.createElement('div')
        overlay.style.cssText = 'position: fixed; inset: 0; pointer-events: none; background: white'
        document.body.append(overlay)
        const copied = new Promise((resolve) => {
          document.querySelector('symbolon-reveal')!.addEventListener('copy', (event) => {
            const { detail, clipboardData } = event as unknown as CustomEvent & ClipboardEvent
            resolve([detail, clipboardData])
          })
        })
        Object.assign(window, { copied })
      })
      const button = page.frameLocator('iframe').getByRole('button')
      const { x, y, width, height } = (await button.boundingBox())!
      await page.mouse.click(x + width / 2, y + height / 2)
      const seen = await page.evaluate(async () => {
        const copied = await (window as unknown as { copied: Promise<unknown> }).copied
        const read = await navigator.clipboard.readText().catch((error: Error) => error.name)
        return [copied, read]
      })
      assert.deepEqual(seen, [[null, undefined], 'NotAllowedError'])
      await page.close()
    })

    test('show no other token than the authorized one', async () => {
      const other = await shop.store({
        number: NUMBER,
        expiration_month: 11,
        expiration_year: 2047,
      })
      const page = await openShopPage(browser, shop, REVEAL)
      const outcome = await revealAs(page, other, async (nonce) => await shop.authorize(nonce, id))
      assert.equal(outcome.status, 403, JSON.stringify(outcome))
      assert.equal(await page.frameLocator('iframe').locator('dd').count(), 0)
      await page.close()
    })

    test('show nothing to a session whose nonce was not authorized', async () => {
      const page = await openShopPage(browser, shop, `${REVEAL}${REVEAL}`)
      let first = ''
      await revealAs(page, id, async (nonce) => {
        first = nonce
        return await Promise.resolve()
      })
      const outcome = await revealAs(page, id, async () => await shop.authorize(first, id), 1)
      assert.equal(outcome.status, 403, JSON.stringify(outcome))
      assert.equal(await page.frameLocator('iframe >> nth=1').locator('dd').count(), 0)
      await page.close()
    })

    test('say that a session has expired', async () => {
      const page = await openShopPage(browser, shop, REVEAL)
      const outcome = await revealAs(page, id, async (nonce) => {
        const rule = {
          description: 'for a moment',
          priority: 1,
          transform: 'reveal',
          permissions: ['token:read'],
          conditions: [{ attribute: 'id', operator: 'equals', value: id }],
        }
        let [status, expiry] = [0, 0]
        // On a busy machine, a moment may be over before the request arrives.
        for (let moment = 2000; status !== 200 && moment < 100_000; moment *= 2) {
          expiry = Date.now() + moment
          const expiresAt = new Date(expiry).toISOString()
          const body = { nonce, rules: [rule], expires_at: expiresAt }
          ;({ status } = await shop.call(shop.privateKey, 'POST', '/sessions/authorize', body))
        }
        assert.equal(status, 200)
        await wait(expiry + 1 - Date.now())
      })
      assert.deepEqual(
        [outcome.status, outcome.code],
        [401, 'session_expired'],
        JSON.stringify(outcome),
      )
      await page.close()
    })
  })

  for (const [layout, markup] of Object.entries({ card: CARD, group: GROUP })) {
    test(`work on the strictest page without a complaint: ${layout}`, async () => {
      const html = markupOf(shop, markup).replaceAll('<script', '<script nonce="r4nd0m"')
      const listening = `<script nonce="r4nd0m">
        const violations = []
        addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) => {
          violations.push([violatedDirective, blockedURI])
        })
      </script><title>`
      const url = shop.serve(html.replace('<title>', listening), {
        'content-security-policy': [
          "default-src 'none'",
          "script-src 'nonce-r4nd0m'",
          `frame-src ${shop.vaultOrigin}`,
          'img-src data:',
          "require-trusted-types-for 'script'",
          "trusted-types 'none'",
        ].join('; '),
        'cross-origin-embedder-policy': 'require-corp',
        'cross-origin-opener-policy': 'same-origin',
      })
      const page = await openPage(browser, url)
      const warnings: string[] = []
      page.on('console', (it) => warnings.push(it.text()))
      const of = (name: string) =>
        page.frameLocator(layout === 'card' ? 'iframe' : `[name=${name}] iframe`)
      await of('number').getByLabel('Card number').pressSequentially(NUMBER)
      await of('expiry').getByLabel('Expiry date').pressSequentially('1147')
      await of('cvc').getByLabel('Security code').pressSequentially('739')
      const outcome = await call(page, `symbolon-${layout}`, 'tokenize')
      assert.equal(outcome.token?.type, 'card', JSON.stringify(outcome))
      const seen = await page.evaluate('[crossOriginIsolated, violations]')
      assert.deepEqual(seen, [true, []])
      assert.deepEqual([...page.complaints, ...warnings], [])
      await page.close()
    })
  }

  /** Returns the same URL of an origin that no application lists. */
  function foreign(url: string): string {
    return url.replace('127.0.0.1', 'localhost')
  }

  function documentUrl(key: string, origin: string, nonce = NONCE): string {
    const hash = createHash('sha256').update(key).digest('hex')
    return `${buildUrl}frame/${hash}#${new URLSearchParams({ origin, nonce })}`
  }

  /** Returns a page that embeds the document itself, and answers any greeting. */
  function forgingPage(key: string, origin = shop.origin, nonce = NONCE): string {
    return `<title>Forger</title>
<script>
  window.seen = []
  addEventListener('message', ({ data }) => seen.push(data))
</script>
<iframe src="${documentUrl(key, origin, nonce).replaceAll('&', '&amp;')}"></iframe>
<script>
  frames[0].postMessage({ symbolon: 'connect', nonce: '${nonce}' }, '*', [new MessageChannel().port2])
</script>`
  }

  async function reveal(page: Page, id: string): Promise<string> {
    let nonce = ''
    const outcome = await revealAs(page, id, async (it) => {
      nonce = it
      await shop.authorize(it, id)
    })
    assert.deepEqual(outcome, {})
    return nonce
  }
})

const NONCE = '00000000-0000-4000-8000-000000000000'

let authorizers = 0

/** Reveals a token, and returns the members of the error, or nothing. */
async function revealAs(
  page: Page,
  tokenId: string,
  authorize: (nonce: string) => Promise<void>,
  at = 0,
): Promise<{ status?: number; code?: string; detail?: string }> {
  const name = `authorize${authorizers++}`
  await page.exposeFunction(name, authorize)
  return await page.evaluate(
    async ([tokenId, name, at]) => {
      const element = document.querySelectorAll('symbolon-reveal')[at]!
      const authorize = (window as unknown as Record<string, (nonce: string) => unknown>)[name]!
      try {
        await element.reveal(tokenId, authorize)
        return {}
      } catch (error) {
        const { status, code, detail } = error as { status: number; code: string; detail: string }
        return { status, code, detail }
      }
    },
    [tokenId, name, at] as const,
  )
}

/** Asserts that an element says that it cannot be embedded, once its iframe has loaded, and that no iframe shows anything. */
async function assertNotEmbedded(page: Page | Frame): Promise<void> {
  const { code, detail } = await errorOf(page)
  assert.equal(code, 'not_embedded')
  assert.match(detail, /allowed_origins/)
  const [frame] = 'childFrames' in page ? page.childFrames() : page.mainFrame().childFrames()
  assert.equal(await frame!.locator('input').count(), 0)
}

/** Returns the error of the first element, which must fail. */
async function errorOf(page: Page | Frame): Promise<{ code: string; detail: string }> {
  return await page.evaluate(async (selector) => {
    const element = document.querySelector<HTMLElement & { ready: Promise<void> }>(selector)!
    await customElements.whenDefined(element.localName)
    const reason = (await element.ready.then(
      () => ({ code: 'none', detail: '' }),
      (error: unknown) => error,
    )) as { code: string; detail: string }
    return { code: reason.code, detail: reason.detail }
  }, ELEMENTS)
}

async function childOf(frame: Frame): Promise<Frame> {
  await frame.waitForSelector('iframe')
  return frame.childFrames()[0]!
}

/** Returns the messages that a forging page got: at least `least` of them, or those that came in a while. */
async function forgedMessages(frame: Frame, least = 0): Promise<unknown> {
  await frame.waitForLoadState()
  return await frame.evaluate(async (least) => {
    const { seen } = window as unknown as { seen: unknown[] }
    do await new Promise((resolve) => setTimeout(resolve, 200))
    while (seen.length < least)
    return seen
  }, least)
}
