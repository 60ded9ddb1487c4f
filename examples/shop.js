/**
 * A shop in Node: serves a page with card fields, and charges the token through the vault's proxy. It never sees a card number.
 *
 *   KEY=key_local_mgt_... node examples/shop.js          the page in plain HTML
 *   KEY=key_local_mgt_... node examples/shop.js react    the page in React
 *
 * VAULT_URL (http://localhost:4400), PAYMENT_URL (https://localhost:4443) and PORT (8080) are optional.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'

const {
  KEY,
  VAULT_URL = 'http://localhost:4400',
  PAYMENT_URL = 'https://localhost:4443',
} = process.env
const page = process.argv[2] ?? 'html'

if (KEY === undefined) throw new Error('Set KEY to the management key that the vault printed.')

const server = createServer()
await once(server.listen(Number(process.env.PORT ?? 8080), 'localhost'), 'listening')
const origin = `http://localhost:${server.address().port}`

// The two keys of the shop. A real shop has them from its configuration, and no management key.
const publicKey = await createKey({
  name: 'Shop page',
  type: 'public',
  permissions: ['token:create'],
  allowed_origins: [origin],
})
const chargeKey = await createKey({
  name: 'Shop server',
  type: 'private',
  permissions: ['token:use'],
})

server.on('request', (request, response) => {
  answer(request, response).catch((error) => {
    console.error(error)
    response.destroy()
  })
})
console.log(`The shop is at ${origin}`)

async function answer(request, response) {
  const route = `${request.method} ${request.url}`
  if (route === 'GET /') await sendPage(response)
  else if (route === 'GET /app.js' && page === 'react') await sendScript(response)
  else if (route === 'POST /pay') await pay(request, response)
  else response.writeHead(404).end()
}

/** The vault replaces the expressions by the card, on its way to the payment provider. */
async function pay(request, response) {
  const { token } = JSON.parse(await textOf(request))
  // It goes into an expression, so it must be an id and nothing else.
  if (!/^[0-9a-f-]{36}$/.test(token)) return sendJson(response, 400, { message: 'No such card.' })
  const charged = await fetch(`${VAULT_URL}/proxy`, {
    method: 'POST',
    headers: {
      'BT-API-KEY': chargeKey,
      'BT-PROXY-URL': `${PAYMENT_URL}/charges`,
      'Content-Type': 'application/json',
    },
    body: JSON.stringify({
      amount: 3000,
      currency: 'EUR',
      number: `{{ ${token} | json: '$.number' }}`,
      expiry: `{{ ${token} | json: '$.expiration_month' }}/{{ ${token} | json: '$.expiration_year' }}`,
      code: `{{ ${token} | json: '$.cvc' }}`,
    }),
  })
  if (charged.ok) return sendJson(response, 200, { message: 'Paid. Thank you.' })
  // Not for the page: a provider's error may repeat the number.
  console.error(`Not paid: ${charged.status}`)
  sendJson(response, 502, { message: 'Not paid.' })
}

async function sendPage(response) {
  const nonce = randomBytes(16).toString('base64')
  const template = await readFile(new URL(`${page}/index.html`, import.meta.url), 'utf8')
  response.writeHead(200, {
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': [
      "default-src 'none'",
      `script-src 'nonce-${nonce}'`,
      `frame-src ${VAULT_URL}`,
      "connect-src 'self'",
      'img-src data:',
      "require-trusted-types-for 'script'",
      "base-uri 'none'",
      "form-action 'none'",
    ].join('; '),
  })
  response.end(
    template
      .replaceAll('%NONCE%', nonce)
      .replaceAll('%VAULT%', VAULT_URL)
      .replaceAll('%PUBLIC_KEY%', publicKey),
  )
}

async function sendScript(response) {
  const { build } = await import('esbuild')
  const { outputFiles } = await build({
    entryPoints: [new URL('react/app.jsx', import.meta.url).pathname],
    bundle: true,
    format: 'esm',
    jsx: 'automatic',
    define: { 'process.env.NODE_ENV': '"production"' },
    write: false,
  })
  response.writeHead(200, { 'Content-Type': 'text/javascript; charset=utf-8' })
  response.end(outputFiles[0].contents)
}

async function createKey(application) {
  const response = await fetch(`${VAULT_URL}/applications`, {
    method: 'POST',
    headers: { 'BT-API-KEY': KEY, 'Content-Type': 'application/json' },
    body: JSON.stringify(application),
  })
  const answer = await response.json()
  if (!response.ok) throw new Error(`The vault refused to create a key: ${answer.detail}`)
  return answer.key
}

async function textOf(request) {
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) text += chunk
  return text
}

function sendJson(response, status, body) {
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
}
