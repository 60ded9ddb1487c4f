/**
 * Card fields: what a page loads to let a card number go from the browser into the vault without passing the page.
 *
 * Public: scripts, a style sheet, and documents that only pages of an application's allowed origins can embed.
 */
import { ServiceError } from '../base/service-error.ts'
import { endpoint, type Endpoint } from '../http/endpoint.ts'
import type { World } from '../ports/world.ts'
import { renderError } from '../request/render-error.ts'
import type { Answer } from '../request/response.ts'
import { BUILD_FILES, type FieldBuilds } from './field-builds.ts'
import { frameDocument } from './frame-document.ts'

const SHARED_HEADERS = ['sharedOrigin', 'crossOriginResourcePolicy'] as const

const DOCUMENT_HEADERS = [
  'cacheControl',
  'contentSecurityPolicy',
  'contentTypeOptions',
  'crossOriginEmbedderPolicy',
  'crossOriginResourcePolicy',
  'permissionsPolicy',
  'referrerPolicy',
] as const

export function fieldEndpoints(builds: FieldBuilds): Endpoint[] {
  return [
    endpoint({
      method: 'GET',
      path: '/fields/v1/fields.js',
      summary: 'The script of card fields, in its current build',
      permission: 'public',
      answers: {
        302: {
          description: 'The path of the current build.',
          headers: ['location', 'cacheControl', ...SHARED_HEADERS],
        },
      },
      refusals: ['route_not_found'],
      handle: async () => await redirectToCurrent(builds),
    }),
    endpoint({
      method: 'GET',
      path: '/fields/v1/:build/:file',
      summary: 'A file of a build of card fields',
      permission: 'public',
      answers: {
        200: {
          description: 'The file, which never changes.',
          contentType: ['text/css', 'text/javascript'],
          headers: [
            'cacheControl',
            'contentEncoding',
            'contentTypeOptions',
            'vary',
            ...SHARED_HEADERS,
          ],
        },
      },
      refusals: ['route_not_found'],
      callerChosenIds: true,
      handle: async ({ params }) => await buildFile(builds, params['build']!, params['file']!),
    }),
    endpoint({
      method: 'GET',
      path: '/fields/v1/:build/frame/:key_hash',
      summary: 'The document of an iframe with card fields',
      permission: 'public',
      answers: {
        200: {
          description: 'The document, as HTML.',
          contentType: 'text/html',
          headers: DOCUMENT_HEADERS,
        },
        404: {
          description: 'A document that no page can embed: the application lists no origins.',
          contentType: 'text/html',
          headers: DOCUMENT_HEADERS,
        },
      },
      handle: async ({ world, params }) =>
        frameDocument(await originsOf(world, params['key_hash']!)),
    }),
  ]
}

async function redirectToCurrent(builds: FieldBuilds): Promise<Answer> {
  const build = await builds.current()
  if (build === null) throw new ServiceError('route_not_found')
  return {
    status: 302,
    headers: {
      ...FOR_ANY_PAGE,
      location: `/fields/v1/${build}/fields.js`,
      'cache-control': 'no-cache',
    },
  }
}

async function buildFile(builds: FieldBuilds, build: string, file: string): Promise<Answer> {
  const type = Object.hasOwn(BUILD_FILES, file) ? BUILD_FILES[file]! : null
  const found = type === null ? null : await builds.read(build, file)
  if (type === null || found === null) return NOT_FOUND
  return {
    status: 200,
    bytes: found.content,
    gzipped: found.gzipped,
    headers: {
      ...FOR_ANY_PAGE,
      'content-type': type,
      'cache-control': 'public, max-age=31536000, immutable',
      'x-content-type-options': 'nosniff',
      vary: 'Accept-Encoding',
    },
  }
}

/** While servers are upgraded one by one, an old one does not have a new build yet: no cache may keep that. */
const NOT_FOUND: Answer = {
  status: 404,
  body: renderError(new ServiceError('route_not_found')).body,
  headers: { 'cache-control': 'no-store' },
}

/** The same for every page: no key and no cookie decides what is in them. */
const FOR_ANY_PAGE = {
  'access-control-allow-origin': '*',
  'cross-origin-resource-policy': 'cross-origin',
}

/** Returns the origins that may embed the fields of the public key with this hash; null if there are none, or no such key. */
async function originsOf(
  { store, clock }: Pick<World, 'store' | 'clock'>,
  keyHash: string,
): Promise<readonly string[] | null> {
  if (!/^[0-9a-f]{64}$/.test(keyHash)) return null
  const holder = await store.applications.findByKeyHash(Buffer.from(keyHash, 'hex'))
  if (holder === null) return null
  const { type, expiresAt, allowedOrigins } = holder.application
  if (type !== 'public' || (expiresAt !== null && expiresAt <= clock.now())) return null
  return allowedOrigins
}
