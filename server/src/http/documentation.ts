/**
 * The page at `/`, for people who open the service in a browser, and the documentation of this very version, as text.
 *
 * Both are public: they say nothing about this vault but its version, which the OpenAPI document states, too.
 */
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { ServiceError } from '../base/service-error.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import type { Answer } from '../request/response.ts'

const SAFE_HEADERS = ['contentSecurityPolicy', 'contentTypeOptions'] as const

/** Beside the compiled code in a package, and at the root of a checkout. */
const FOLDER = [new URL('../docs/', import.meta.url), new URL('../../../docs/', import.meta.url)]

/** Pages in the order a newcomer reads them; all others follow by name. */
const FIRST = ['interface.md', 'expressions.md', 'errors.md', 'threat-model.md', 'operate/run.md']

export function documentationEndpoints(
  version: string,
): Record<'getHome' | 'getPage' | 'getOperatingPage', Endpoint> {
  let pages: Promise<ReadonlyMap<string, string>> | undefined
  const read = (): Promise<ReadonlyMap<string, string>> => {
    pages ??= readPages()
    // The next visitor may have better luck, for example with file descriptors.
    pages.catch(() => (pages = undefined))
    return pages
  }
  return {
    getHome: endpoint({
      method: 'GET',
      path: '/',
      summary: 'A page with links to the documentation',
      permission: 'public',
      answers: {
        200: { description: 'The page, as HTML.', contentType: 'text/html', headers: SAFE_HEADERS },
      },
      handle: async () => homePage(version, await read()),
    }),
    getPage: endpoint({
      method: 'GET',
      path: '/docs/:page',
      summary: 'A page of the documentation',
      permission: 'public',
      answers: {
        200: {
          description: 'The page, as Markdown.',
          contentType: 'text/plain',
          headers: SAFE_HEADERS,
        },
      },
      handle: async ({ params }) => pageOf(await read(), params['page']!),
    }),
    getOperatingPage: endpoint({
      method: 'GET',
      path: '/docs/operate/:page',
      summary: 'A page of the documentation for operators',
      permission: 'public',
      answers: {
        200: {
          description: 'The page, as Markdown.',
          contentType: 'text/plain',
          headers: SAFE_HEADERS,
        },
      },
      handle: async ({ params }) => pageOf(await read(), `operate/${params['page']!}`),
    }),
  }
}

/** Returns the text of each page by its path below `docs/`. Decision records are for maintainers and are left out. */
async function readPages(): Promise<ReadonlyMap<string, string>> {
  const folder = FOLDER.find((it) => existsSync(it))
  if (folder === undefined) throw new Error('The documentation is not installed')
  const pages: [path: string, text: string][] = []
  for (const part of ['', 'operate/']) {
    for (const name of await readdir(new URL(part, folder))) {
      const path = part + name
      if (path.endsWith('.md')) pages.push([path, await readFile(new URL(path, folder), 'utf8')])
    }
  }
  return new Map(pages.toSorted(([a], [b]) => rankOf(a) - rankOf(b) || (a < b ? -1 : 1)))
}

function rankOf(path: string): number {
  const at = FIRST.indexOf(path)
  return at < 0 ? FIRST.length : at
}

function pageOf(pages: ReadonlyMap<string, string>, path: string): Answer {
  const text = pages.get(path)
  if (text === undefined) throw new ServiceError('route_not_found')
  return { status: 200, text, headers: { ...SAFE, 'content-type': 'text/plain; charset=utf-8' } }
}

function homePage(version: string, pages: ReadonlyMap<string, string>): Answer {
  const links = [...pages].map(([path, text]) => {
    const title = /^# (.+)$/m.exec(text)?.[1] ?? path
    return `<li><a href="/docs/${path}">${escaped(title)}</a></li>`
  })
  const text = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Symbolon</title>
<h1>Symbolon ${escaped(version)}</h1>
<p>A tokenization vault. It works: programs call it over HTTP, with an API key.</p>
<p><a href="/openapi.json">OpenAPI document</a></p>
<h2>Documentation of this version</h2>
<ul>
${links.join('\n')}
</ul>
</html>
`
  return { status: 200, text, headers: { ...SAFE, 'content-type': 'text/html; charset=utf-8' } }
}

/** The pages need no script, style or image, so browsers must load none, and embed the pages nowhere. */
const SAFE = {
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
}

function escaped(text: string): string {
  return text.replaceAll(/[&<>"]/g, (it) => `&#${it.charCodeAt(0)};`)
}
