/**
 * `npm run bench --workspace fields`: what card fields cost a page, beside a plain page with plain inputs, in one run.
 *
 * Sizes are of the files as sent, compressed; requests are those of the browser; times are from navigation until the
 * number's input takes a keystroke. `--rounds N` (20 by default). Exits with 1 when a gate is missed.
 */
import { parseArgs } from 'node:util'
import { gzipSync } from 'node:zlib'
import type { Browser } from 'playwright-core'
import { bundle } from '../build.ts'
import { markupOf } from '../test/card-page.ts'
import { openChromium } from '../test/chromium.ts'
import { openShop } from '../test/shop.ts'

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '20' } } })
const ROUNDS = Number(values.rounds)

const KB = 1000
const PAGE_BYTES_MAX = 12 * KB
const FRAME_BYTES_MAX = 20 * KB

const PLAIN = `<!doctype html><html lang="en"><title>Shop</title><link rel="icon" href="data:,">
<form><label>Card number <input id="number" autocomplete="cc-number"></label>
<label>Expiry date <input autocomplete="cc-exp"></label>
<label>Security code <input autocomplete="cc-csc"></label></form></html>`

const SEPARATE = `<symbolon-group KEY>
  <symbolon-field name="number"></symbolon-field>
  <symbolon-field name="expiry"></symbolon-field>
  <symbolon-field name="cvc"></symbolon-field></symbolon-group>`

interface Visit {
  readonly ms: number
  readonly requests: number
  readonly bytes: number
}

const files = await bundle()
const size = (name: string): number => gzipSync(files.get(name)!, { level: 9 }).length
const page = size('fields.js')
const frame = size('frame.js') + size('frame.css')
print(`script of the page     ${page} bytes, at most ${PAGE_BYTES_MAX}`)
print(`script and style of the iframe  ${frame} bytes, at most ${FRAME_BYTES_MAX}`)

const shop = await openShop()
const browser = await openChromium()
const variants: [name: string, url: string, selector: string][] = [
  ['plain inputs', shop.serve(PLAIN), ''],
  [
    'one iframe',
    shop.serve(markupOf(shop, '<symbolon-card KEY></symbolon-card>')),
    'symbolon-card',
  ],
  ['iframes of their own', shop.serve(markupOf(shop, SEPARATE)), '[name=number]'],
]
for (const cache of ['cold', 'warm'] as const) {
  const visits = new Map<string, Visit[]>()
  // In turn, so that what slows the machine down slows all of them down.
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, url, selector] of variants) {
      const list = visits.get(name) ?? []
      list.push(await visit(browser, { url, selector, warm: cache === 'warm' }))
      visits.set(name, list)
    }
  }
  print(`\n${cache} cache, ${ROUNDS} visits each   median ms  slowest ms  requests  bytes`)
  for (const [name, list] of visits) {
    const times = list.map((it) => it.ms).toSorted((a, b) => a - b)
    const { requests, bytes } = list.at(-1)!
    const cells = [times[times.length >> 1]!.toFixed(0), times.at(-1)!.toFixed(0), requests, bytes]
    print(`${name.padEnd(30)}${cells.map((it) => String(it).padStart(11)).join('')}`)
  }
}
await browser.close()
await shop.close()
if (page > PAGE_BYTES_MAX || frame > FRAME_BYTES_MAX) process.exitCode = 1

/** Opens a page in a browser without, or with, the files in its cache, and types into the number. */
async function visit(
  browser: Browser,
  { url, selector, warm }: { url: string; selector: string; warm: boolean },
): Promise<Visit> {
  const context = await browser.newContext()
  const tab = await context.newPage()
  if (warm) {
    await tab.goto(url)
    await usable(tab, selector)
    await tab.goto('about:blank')
  }
  let requests = 0
  let bytes = 0
  tab.on('requestfinished', (request) => {
    requests += Number(!request.url().startsWith('data:'))
    void request.sizes().then((it) => (bytes += it.responseBodySize + it.responseHeadersSize))
  })
  const from = performance.now()
  await tab.goto(url, { waitUntil: 'commit' })
  await usable(tab, selector)
  const ms = performance.now() - from
  await tab.waitForLoadState('networkidle')
  await context.close()
  return { ms, requests, bytes }
}

/** Resolves once the number's input has taken a digit. */
async function usable(
  tab: Awaited<ReturnType<Browser['newPage']>>,
  selector: string,
): Promise<void> {
  const input =
    selector === ''
      ? tab.locator('#number')
      : tab.frameLocator(`${selector} iframe`).locator('#number')
  await input.press('4')
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
