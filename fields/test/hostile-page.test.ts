/** A page whose every script is hostile sees the card in inputs of its own, and nothing of it in card fields. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Browser, CDPSession, Locator, Page } from 'playwright-core'
import { lacksPrograms } from '../../server/test/kit/programs.ts'
import { markupOf, openPage, openShopPage } from './card-page.ts'
import { openChromium } from './chromium.ts'
import { STEP_MS_MAX } from './engine.ts'
import { ATTEMPTS, type HostileAttempt } from './hostile-attempts.ts'
import { hostileScript } from './hostile-tools.ts'
import { PLAIN_FORM, plainScript } from './plain-checkout.ts'
import { openShop, type Shop } from './shop.ts'

/** No run of four digits in it occurs twice, so that a part of it is known as such. */
const NUMBER = '4916038725197649'
const EXPIRY = '1147'
const CODE = '739'

/** A Visa number whose first 13 digits are a complete Visa number, too, as one in ten are. */
const TWICE_COMPLETE = '4916038725001007'

/** All that a page's key may do. */
const PUBLIC = { type: 'public', permissions: ['token:create'] }

/** What docs/browser.md says the page learns of a complete number. */
const SHOWN = [NUMBER.slice(0, 8), NUMBER.slice(-4)]

/** Digits of the number in a row that would be a leak. */
const RUN = 7

const LAYOUTS = {
  'symbolon-card': '<symbolon-card KEY></symbolon-card>',
  'symbolon-group': `<symbolon-group KEY>
    <symbolon-field name="number"></symbolon-field>
    <symbolon-field name="expiry"></symbolon-field>
    <symbolon-field name="cvc"></symbolon-field>
  </symbolon-group>`,
}

/** Accepted, and no more than text to CSS: comments part the name from the parenthesis. */
const HARMLESS_STYLES: readonly object[] = [
  { input: { 'background-color': 'url/**/(/leak)' } },
  { input: { 'font-family': '"url" "(/leak)"' } },
]

const STYLES: readonly object[] = [
  { input: { 'background-color': 'url(/leak)' } },
  { input: { 'background-color': 'URL ("/leak")' } },
  { input: { 'background-color': String.raw`\75rl(/leak)` } },
  { input: { 'background-color': 'image-set("/leak" 1x)' } },
  { input: { 'background-color': 'ｕｒｌ(/leak)' } },
  { input: { 'font-family': 'x; } @font-face { font-family: y; src: url(/leak) }' } },
  { input: { 'font-family': '@import "/leak"' } },
  { input: { color: 'var(--leak)' } },
  { input: { color: 'attr(value type(<color>))' } },
  { input: { color: 'env(leak)' } },
  { input: { color: 'red !important; background: red' } },
  { input: { background: 'url(/leak)' } },
  { input: { '--leak': 'url(/leak)' } },
  { input: { content: 'attr(value)' } },
  { input: { animation: 'leak 1s' } },
  { 'input[value^="4"]': { color: 'red' } },
  { 'input, *': { color: 'red' } },
  { constructor: { color: 'red' } },
  { input: { color: ['red'] } },
  { input: { color: 'a'.repeat(201) } },
]

/** Reports the body of each request. */
const SERVICE_WORKER = `
self.addEventListener('install', () => self.skipWaiting())
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()))
self.addEventListener('fetch', ({ request, resultingClientId, clientId, waitUntil }) => {
  const report = async () => {
    const message = { url: request.url, body: await request.clone().text() }
    for (const it of await self.clients.matchAll()) it.postMessage(message)
  }
  void report()
})`

/** Returns what of the card is in `text`. */
function leaksIn(text: string): string[] {
  const plain = text
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, 'UUID')
    .replaceAll(/(?<=\d)[ -](?=\d)/g, '')
    .replaceAll(new RegExp(String.raw`(?<!\d)(?:${SHOWN.join('|')})(?!\d)`, 'g'), 'SHOWN')
  const leaks: string[] = []
  for (let at = 0; at + RUN <= NUMBER.length; at++) {
    const run = NUMBER.slice(at, at + RUN)
    if (plain.includes(run)) leaks.push(run)
  }
  const word = (digits: string): RegExp => new RegExp(String.raw`(?<![\w.:-])${digits}(?![\w.:-])`)
  if (word(CODE).test(plain)) leaks.push(CODE)
  for (const it of [EXPIRY, '11/47', '11 / 47', '2047']) {
    if (word(it).test(plain)) leaks.push(it)
  }
  return leaks
}

test('a leak is found in whatever form it has', () => {
  assert.notDeepEqual(leaksIn('{"number":"4916038725197649"}'), [])
  assert.notDeepEqual(leaksIn('4916 0387 2519 7649'), [])
  assert.notDeepEqual(leaksIn('0387251'), [])
  assert.notDeepEqual(leaksIn('code: 739\n'), [])
  assert.notDeepEqual(leaksIn('expiry: 11 / 47\n'), [])
  const shown = 'bin: 49160387\nlastFour: 7649\nport 127.0.0.1:37390 f739a-1147-4000'
  assert.deepEqual(leaksIn(shown), [])
})

describe('a hostile page', { skip: lacksPrograms('chromium') }, () => {
  let shop: Shop
  let browser: Browser
  let plainKey: string
  let fieldsKey: string
  let workerUrl: string
  /** One for all pages, since a new one takes longer than most attempts. */
  let tab: { readonly page: Page; readonly inPage: CDPSession }
  before(async () => {
    shop = await openShop()
    browser = await openChromium()
    await openTab()
    // A page with card fields changes stored cards by sessions, so its key needs less.
    const permissions = ['token:create', 'token:update']
    plainKey = await shop.createKey({ ...PUBLIC, permissions, name: 'Checkout' })
    fieldsKey = await shop.createKey({ ...PUBLIC, name: 'Fields', allowed_origins: [shop.origin] })
    workerUrl = shop.serve(SERVICE_WORKER, { 'content-type': 'text/javascript' })
  })
  after(async () => {
    await browser.close()
    await shop.close()
  })

  test('there are enough attempts, each with a name of its own', () => {
    assert.ok(ATTEMPTS.length >= 45, String(ATTEMPTS.length))
    assert.equal(new Set(ATTEMPTS.map((it) => it.name)).size, ATTEMPTS.length)
  })

  describe('sees a card in inputs of its own:', () => {
    const listening = ATTEMPTS.filter((it) => it.listens === true)
    // They leave every built-in as it is, and follow each other.
    const acting = ATTEMPTS.filter((it) => it.first === undefined && it.alone !== true)
    const together: readonly (readonly HostileAttempt[])[] = [listening, acting]
    const others = ATTEMPTS.filter((it) => !together.some((some) => some.includes(it)))
    for (const attempts of [...together, ...others.map((it) => [it])]) {
      let seen: Record<string, string> | undefined
      for (const { name } of attempts) {
        test(name, async () => {
          seen ??= await attackPlain(attempts)
          assert.notDeepEqual(leaksIn(seen[name]!), [], seen[name]!.slice(0, 500))
        })
      }
    }
  })

  for (const [layout, markup] of Object.entries(LAYOUTS)) {
    describe(`sees nothing of it in <${layout}>:`, () => {
      const together = ATTEMPTS.filter((it) => it.alone !== true)
      let shared: Record<string, string>
      before(async () => {
        // Without what the careless checkout has stored.
        await openTab()
        shared = await attackFields(layout, markup, together)
      })
      test('although the attempts reached the fields and the vault', () => {
        assert.match(shared['expressions in options']!, /options_invalid/)
        assert.match(shared['events of the element, keystroke by keystroke']!, /lastFour: 7649/)
        assert.match(shared['forged calls on a stolen port']!, /call_unknown/)
        assert.match(
          shared['the stored token, changed with the key of the page']!,
          /permission_missing/,
        )
      })
      for (const { name } of together) {
        test(name, () => assert.deepEqual(leaksIn(shared[name]!), [], shared[name]))
      }
      for (const attempt of ATTEMPTS.filter((it) => it.alone === true)) {
        test(attempt.name, async () => {
          const seen = await attackFields(layout, markup, [attempt])
          assert.deepEqual(leaksIn(seen[attempt.name]!), [], seen[attempt.name])
        })
      }
    })
  }

  test('has had the fields make no token whose mask shows the card', async () => {
    const reading = { name: 'Server', type: 'private', permissions: ['token:read'] }
    const key = await shop.createKey(reading)
    const { managementKey } = shop.vault
    const { body: listed } = await shop.call(managementKey, 'GET', '/applications?size=100')
    const applications = listed['data'] as { id: string; name: string }[]
    const { id } = applications.find((it) => it.name === 'Fields')!
    const { body } = await shop.call(key, 'GET', '/tokens?size=100')
    const tokens = (body['data'] as { created_by: string; data: object }[]).filter(
      (it) => it.created_by === id,
    )
    assert.ok(tokens.length > 10, JSON.stringify(body))
    for (const { data } of tokens) {
      const { number, cvc } = data as { number?: string; cvc?: string }
      assert.deepEqual(
        leaksIn(JSON.stringify([number, cvc, data])).filter((it) => it !== '2047'),
        [],
      )
    }
  })

  test('cannot have a coordinator with a key of its own join the fields of a group', async () => {
    const ownKey = await shop.createKey({ ...PUBLIC, allowed_origins: [shop.origin], name: 'Own' })
    const page = await openShopPage(
      browser,
      { ...shop, publicKey: fieldsKey },
      LAYOUTS['symbolon-group'],
    )
    await fillIn((name) => fieldOf(page, name))
    const join = async (key: string): Promise<unknown> =>
      await page.evaluate(async (key) => {
        const group = document.querySelector('symbolon-group')!
        const own = document.createElement('symbolon-group')
        own.setAttribute('public-key', key)
        const changed = own as unknown as {
          configure: () => object
          call: (call: object) => Promise<unknown>
        }
        changed.configure = () => ({ role: 'coordinator', group: group.groupId })
        document.body.append(own)
        await own.ready
        return await changed
          .call({ type: 'join', fields: ['number', 'expiry', 'cvc'] })
          .catch((error: { code: string }) => error.code)
      }, key)
    assert.equal(await join(ownKey), 'fields_missing')
    // With the key of the fields it can: so only the key is what makes the difference.
    assert.equal(await join(fieldsKey), null)
    await page.context().close()
  })

  test('cannot configure an iframe with another key than that of its URL', async () => {
    const ownKey = await shop.createKey({ ...PUBLIC, allowed_origins: [shop.origin], name: 'Own' })
    const forging = `<script>
      const { postMessage } = MessagePort.prototype
      MessagePort.prototype.postMessage = function (message, ...rest) {
        const { type, configuration } = message
        const forged = { type, configuration: { ...configuration, publicKey: '${ownKey}' } }
        return postMessage.call(this, type === 'configure' ? forged : message, ...rest)
      }
    </script>`
    const html = markupOf(shop, `${forging}${LAYOUTS['symbolon-card']}`, fieldsKey)
    const page = await openPage(browser, shop.serve(html))
    const code = await page.evaluate(async () => {
      const element = document.querySelector('symbolon-card')!
      await customElements.whenDefined('symbolon-card')
      return await element.ready.catch((error: { code: string }) => error.code)
    })
    assert.equal(code, 'configuration_invalid')
    assert.equal(await page.frameLocator('iframe').locator('input').count(), 0)
    await page.context().close()
  })

  for (const [how, steals] of [
    ['typed at once', false],
    ['whose buyer loses the focus on the way', true],
  ] as const) {
    test(`cannot put a number together from the ends of its beginnings: one ${how}`, async () => {
      const page = await openShopPage(
        browser,
        shop,
        `${LAYOUTS['symbolon-card']}<input id="thief">`,
      )
      await page.evaluate(() => {
        const states: unknown[] = []
        document.querySelector('symbolon-card')!.addEventListener('change', (event) => {
          states.push((event as CustomEvent).detail)
        })
        Object.assign(window, { states })
      })
      const number = page.frameLocator('iframe').getByLabel('Card number')
      await number.pressSequentially(TWICE_COMPLETE.slice(0, 13))
      if (steals) {
        await page.locator('#thief').focus()
        await page.waitForFunction('states.some(({ fields }) => fields.number.complete)')
        await number.focus()
        await page.keyboard.press('End')
      }
      await page.keyboard.type(TWICE_COMPLETE.slice(13))
      await page.locator('#thief').focus()
      await page.waitForFunction('states.at(-1).bin !== null')
      const states = (await page.evaluate('states')) as { lastFour: string; bin: string }[]
      const told = new Set(states.map((it) => it.lastFour).filter((it) => it !== null))
      assert.deepEqual([...told], [TWICE_COMPLETE.slice(0, steals ? 13 : 16).slice(-4)])
      await page.context().close()
    })
  }

  test('cannot have styles load anything', async () => {
    const page = await openShopPage(browser, shop, LAYOUTS['symbolon-card'])
    const loaded: string[] = []
    page.on('request', (it) => loaded.push(it.url()))
    const refused = await page.evaluate(
      async ([styles, harmless]) => {
        const element = document.querySelector('symbolon-card')!
        const codes: unknown[] = []
        element.addEventListener('error', (event) => {
          codes.push((event as unknown as CustomEvent<{ code: string }>).detail.code)
        })
        for (const it of [...harmless, ...styles]) element.styles = it as object
        // Each refusal rejects the call. Messages of a port come in order, so after its answer there is none.
        for (let answer: unknown = null; answer !== 'incomplete';) {
          answer = await element.tokenize().catch((error: { code: string }) => error.code)
        }
        return codes
      },
      [STYLES, HARMLESS_STYLES] as const,
    )
    assert.deepEqual(new Set(refused), new Set(['configuration_invalid']))
    assert.equal(refused.length, STYLES.length)
    assert.deepEqual(loaded, [])
    await page.context().close()
  })

  async function openTab(): Promise<void> {
    const page = await browser.newPage()
    tab = { page, inPage: await page.context().newCDPSession(page) }
  }

  /** Attacks the careless checkout, and returns what was seen, by attempt. */
  async function attackPlain(attempts: readonly HostileAttempt[]): Promise<Record<string, string>> {
    const script = plainScript(shop.vaultOrigin, plainKey)
    const html = pageOf(attempts, plainKey, PLAIN_FORM, script)
    return (await attack(html, attempts, (page) => page.locator('form'))).seen
  }

  /** Attacks fields, and returns what was seen, by attempt. */
  async function attackFields(
    layout: string,
    markup: string,
    attempts: readonly HostileAttempt[],
  ): Promise<Record<string, string>> {
    const script = `const card = document.querySelector('${layout}')
      const pay = () => card.tokenize({ metadata: { order: '17' } })
      Object.assign(window, { card, pay })
      document.forms[0].addEventListener('submit', (event) => event.preventDefault())`
    const fields = `<script type="module" src="${shop.vaultOrigin}/fields/v1/fields.js"></script>
      <form>${markup.replace('KEY', `public-key="${fieldsKey}"`)}</form>`
    const mayPrevent = attempts.some((it) => it.mayPrevent === true)
    const { seen, paid } = await attack(
      pageOf(attempts, fieldsKey, fields, script),
      attempts,
      fieldOf,
      mayPrevent,
    )
    // Fields that do not work keep the card to themselves, too, and would prove nothing.
    if (!mayPrevent) assert.equal(paid?.type, 'card', JSON.stringify(paid))
    return seen
  }

  /** Lets a buyer pay on a page with these attempts. `at` says where the inputs are. */
  async function attack(
    html: string,
    attempts: readonly HostileAttempt[],
    at: (page: Page, name: string) => Pick<Locator, 'getByLabel'>,
    mayPrevent = false,
  ): Promise<{ seen: Record<string, string>; paid: { type?: string } | undefined }> {
    const { page, inPage } = tab
    try {
      await page.goto(shop.serve(html))
      const inputs = (name: string): Pick<Locator, 'getByLabel'> => at(page, name)
      const listening = attempts.some((it) => it.listens === true)
      const filling = listening
        ? typeIn(page, inputs)
        : fillIn(inputs, mayPrevent ? 500 : STEP_MS_MAX)
      const usable = await filling.then(
        () => true,
        (error: unknown) => {
          if (!mayPrevent) throw error
          return false
        },
      )
      const paid = usable ? ((await evaluate(inPage, 'pay()')) as { type?: string }) : undefined
      for (const { name, later } of attempts) {
        if (later !== undefined)
          await evaluate(inPage, `hostilePage.later(${JSON.stringify(name)})`)
      }
      const seen = (await evaluate(inPage, 'hostilePage.seen()')) as Record<string, string>
      return { seen, paid }
    } finally {
      for (const it of page.context().pages()) if (it !== page) await it.close()
    }
  }

  /** Returns a page of which `attempts` have control: their scripts come first. */
  function pageOf(
    attempts: readonly HostileAttempt[],
    publicKey: string,
    body: string,
    script: string,
  ): string {
    const known = `;(${installKnowledge})(${JSON.stringify({
      vaultOrigin: shop.vaultOrigin,
      publicKey,
      workerUrl,
      // Stand for the thousand numbers that have these first and last digits. Reversed, so that this script is no leak.
      guesses: ['4916038700007649', NUMBER].map((it) => [...it].toReversed().join('')),
    })})`
    return `<!doctype html>
<html lang="en">
<head>
<script>${known}
${hostileScript(attempts)}</script>
<meta http-equiv="Content-Security-Policy" content="img-src data:">
<title>Hostile shop</title>
<link rel="icon" href="data:,">
</head>
<body>
${body}
<p id="drop">Drop here</p>
<script>${script}</script>
</body>
</html>`
  }
})

function fieldOf(page: Page, name: string): Pick<Locator, 'getByLabel'> {
  const own = `symbolon-field[name=${name}] iframe`
  return {
    getByLabel: (label) => page.frameLocator(`symbolon-card iframe, ${own}`).getByLabel(label),
  }
}

type Inputs = (name: string) => Pick<Locator, 'getByLabel'>

async function fillIn(at: Inputs, timeout = STEP_MS_MAX): Promise<void> {
  await at('number').getByLabel('Card number').fill(NUMBER, { timeout })
  await at('expiry').getByLabel('Expiry date').fill(EXPIRY)
  await at('cvc').getByLabel('Security code').fill(CODE)
}

/** Types a card as a buyer does who changes their mind, and drags the number over the page. */
async function typeIn(page: Page, at: Inputs): Promise<void> {
  const number = at('number').getByLabel('Card number')
  await number.pressSequentially(NUMBER)
  for (const key of ['a', 'c', 'x', 'v', 'a']) await page.keyboard.press(`Control+${key}`)
  await dragOnto(page, number)
  await at('expiry').getByLabel('Expiry date').pressSequentially(EXPIRY)
  await at('cvc').getByLabel('Security code').pressSequentially(CODE)
  await page.keyboard.press('Tab')
}

/** Drags the selected text of an input onto the page. */
async function dragOnto(page: Page, input: Locator): Promise<void> {
  const from = (await input.boundingBox())!
  const to = (await page.locator('#drop').boundingBox())!
  await page.mouse.move(from.x + 30, from.y + from.height / 2)
  await page.mouse.down()
  await page.mouse.move(to.x + 20, to.y + 2, { steps: 4 })
  await page.mouse.move(to.x + 24, to.y + 4)
  await page.mouse.up()
}

/** Evaluates an expression in the page without the help of its built-ins. */
async function evaluate(session: CDPSession, expression: string): Promise<unknown> {
  const { result, exceptionDetails } = await session.send('Runtime.evaluate', {
    expression,
    awaitPromise: true,
    returnByValue: true,
  })
  if (exceptionDetails !== undefined) throw new Error(exceptionDetails.exception?.description)
  return result.value
}

/** Runs in the browser: what an attacker knows, and a function that asks the vault with the page's own key. */
function installKnowledge(known: {
  readonly vaultOrigin: string
  readonly publicKey: string
  readonly workerUrl: string
  readonly guesses: readonly string[]
}): void {
  // Kept, since hooks of other attempts would report what this one sends.
  const { fetch } = window
  const { parse, stringify } = JSON
  const { text } = Response.prototype
  const { apply } = Reflect
  const { vaultOrigin, publicKey, workerUrl, guesses } = known
  const ask = async (method: 'POST' | 'PATCH', path: string, body: object): Promise<unknown> => {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
    const response = await fetch(vaultOrigin + path, {
      method,
      headers: { 'BT-API-KEY': publicKey, 'Content-Type': type },
      body: stringify(body),
    })
    return parse((await apply(text, response, [])) as string)
  }
  Object.assign(window, { ask, guesses, workerUrl })
}
