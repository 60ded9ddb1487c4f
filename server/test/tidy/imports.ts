import path from 'node:path'
import { isTest, linkTo, type SourceFile } from './source.ts'

/**
 * The architecture as a table: which module may import which. A module may always import from itself.
 *
 * A new dependency is a line here, so that it is seen in review, and a decision record that gives the reason.
 */
export const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  base: [],
  ports: ['base'],
  expressions: ['base', 'ports'],
  access: ['base', 'ports'],
  request: ['base', 'ports', 'access'],
  http: ['base', 'ports', 'request', 'adapters/system/patches'],
  'access/applications': ['base', 'ports', 'request', 'access'],
  'access/sessions': ['base', 'ports', 'request', 'access', 'access/applications'],
  definitions: ['base', 'ports', 'request', 'access/applications'],
  audit: ['base', 'ports', 'request', 'access'],
  tokens: ['base', 'ports', 'request', 'expressions', 'access'],
  'key-rotation': ['base', 'ports', 'access'],
  integrity: ['base', 'ports', 'request', 'access', 'audit', 'key-rotation', 'reactors'],
  tenants: ['base', 'ports', 'request', 'access', 'access/applications'],
  transactions: ['base', 'ports', 'request', 'expressions', 'access', 'tokens'],
  fields: ['base', 'ports', 'request'],
  proxy: ['base', 'ports', 'request', 'expressions', 'access', 'tokens', 'definitions'],
  reactors: ['base', 'ports', 'request', 'expressions', 'access', 'access/applications'].concat([
    'tokens',
    'definitions',
  ]),

  'adapters/storage/entity': ['base', 'ports'],
  'adapters/storage/sqlite': ['base', 'ports', 'adapters/storage/entity'],
  'adapters/storage/postgres': ['base', 'ports', 'adapters/storage/entity'],
  'adapters/local-keyring': ['base', 'ports'],
  'adapters/age': ['base'],
  'adapters/canonical-json': ['base', 'ports', 'adapters/worker-thread'],
  'adapters/jail': ['base', 'ports', 'adapters/jail/guest', 'adapters/worker-thread'],
  'adapters/jail/guest': [],
  'adapters/egress': ['base', 'ports', 'adapters/system/patches'],
  'adapters/worker-thread': ['base'],
  'adapters/metrics': ['base', 'ports'],
  'adapters/system': ['base', 'ports'],
  'adapters/system/patches': [],

  config: ['base', 'ports'],
  routes: ['base', 'ports', 'http', 'access', 'access/applications', 'access/sessions'].concat([
    'tokens',
    'transactions',
    'fields',
    'proxy',
    'reactors',
    'audit',
    'tenants',
  ]),
  app: ['base', 'ports', 'http', 'request', 'access', 'reactors', 'routes', 'config'],
  cli: ['*'],
  main: ['*'],

  test: ['*'],
  bench: ['*'],
  build: ['*'],
  crash: ['*'],
}

/** The file of a module that declares its operations, and its test. They alone may import http: use cases know no paths or methods. */
const DECLARING = /\/endpoints(\.test)?\.ts$/

/** Modules tests next to the source may import as well: real randomness, the kit, and the set-up that makes a tenant. */
const TESTS_MAY_IMPORT = ['base', 'ports', 'request', 'adapters/system', 'test'].concat(
  'access/applications',
)

/**
 * Restricted packages: the modules that may import them, outside tests. `adapters` means all of them.
 *
 * Sockets, processes, timers and each technology stay where the layout puts them.
 */
const MODULE_HOMES: Readonly<Record<string, readonly string[]>> = {
  'node:child_process': ['adapters', 'cli'],
  'node:cluster': ['cli'],
  'node:dgram': ['adapters', 'http'],
  'node:dns': ['adapters', 'http'],
  'node:dns/promises': ['adapters', 'http'],
  'node:http': ['adapters', 'http'],
  'node:http2': ['adapters', 'http'],
  'node:https': ['adapters', 'http'],
  'node:net': ['adapters', 'http'],
  'node:sqlite': ['adapters/storage/sqlite'],
  'node:timers': ['adapters'],
  'node:timers/promises': ['adapters'],
  'node:tls': ['adapters', 'http'],
  'node:worker_threads': ['adapters', 'cli'],
  'age-encryption': ['adapters/age'],
  'decimal.js': ['expressions'],
  fastify: ['http'],
  'json-p3': ['expressions'],
  koffi: ['adapters/jail'],
  pg: ['adapters/storage/postgres'],
  undici: ['adapters/egress'],
}

/** Files of the project that re-export such a package, and the name under which they are restricted. */
const HANDED_ON: Readonly<Record<string, string>> = { 'src/base/node-http.ts': 'node:http' }

/** Returns, for each import of `file` that the table does not allow, what is wrong and what to do. */
export function forbiddenImports(file: SourceFile, dependencies: readonly string[]): string[] {
  const unit = unitOf(file.path)
  if (!(unit in MAY_IMPORT)) {
    return [`server/${file.path}: ${unit} is not in the table: add it to MAY_IMPORT in imports.ts`]
  }
  return importsOf(file).flatMap(({ specifier, position, ofTypes }) => {
    const wrong = specifier.startsWith('.')
      ? wrongArrow(file, path.posix.join(path.posix.dirname(file.path), specifier))
      : wrongModule(file, specifier, ofTypes, dependencies)
    return wrong === null ? [] : [`${linkTo(file, position)}: imports ${specifier}: ${wrong}`]
  })
}

/** Returns the files loaded together with `start`: its imports and theirs, except types and dynamic imports. */
export function loadedWith(start: string, files: readonly SourceFile[]): Set<string> {
  const byPath = new Map(files.map((it) => [it.path, it]))
  const loaded = new Set<string>([start])
  for (const name of loaded) {
    const file = byPath.get(name)
    if (file === undefined) throw new Error(`There is no ${name}`)
    for (const { specifier, position, ofTypes } of importsOf(file)) {
      const later = /^import\s*\(/.test(file.code.slice(position))
      if (ofTypes || later || !specifier.startsWith('.')) continue
      const target = path.posix.join(path.posix.dirname(name), specifier)
      if (target.endsWith('.ts')) loaded.add(target)
    }
  }
  return loaded
}

/** Folders of a module that are modules of their own. */
const MODULES_INSIDE = [
  'access/applications',
  'access/sessions',
  'adapters/jail/guest',
  'adapters/system/patches',
]

/** Returns the module a file belongs to: a folder of src/, an adapter, or a file at the top. */
export function unitOf(file: string): string {
  const own = MODULES_INSIDE.find((it) => file.startsWith(`src/${it}/`))
  if (own !== undefined) return own
  const [top, folder, adapter, database] = file.replace(/(\.test|\.contract)?\.ts$/, '').split('/')
  if (top !== 'src') return top!
  if (folder !== 'adapters') return folder!
  return adapter === 'storage' ? `adapters/storage/${database}` : `adapters/${adapter}`
}

function wrongArrow(file: SourceFile, target: string): string | null {
  const [from, to] = [unitOf(file.path), unitOf(target)]
  // A benchmark is not part of the running service, and needs the database of the tests.
  if (isTest(target) && !isTest(file.path) && from !== 'bench') {
    return 'what runs may not lean on tests: move what both need into the source'
  }
  const module = HANDED_ON[target]
  if (module !== undefined && !isTest(file.path) && !isAtHome(module, from)) return farFrom(module)
  const allowed = [from, ...MAY_IMPORT[from]!, ...allowedByName(file.path)]
  if (allowed.includes(to) || allowed.includes('*')) return null
  const may = MAY_IMPORT[from]!.join(', ') || 'nothing'
  return `${from} may import ${may}: hand the value in, or move the word down to base or ports`
}

function wrongModule(
  file: SourceFile,
  specifier: string,
  ofTypes: boolean,
  dependencies: readonly string[],
): string | null {
  if (isTest(file.path) || !file.path.startsWith('src/')) return null
  const unit = unitOf(file.path)
  const builtIn = specifier.startsWith('node:')
  const name = builtIn ? specifier : specifier.split('/', specifier[0] === '@' ? 2 : 1).join('/')

  if (unit === 'adapters/jail/guest') {
    return builtIn ? null : 'the guest is alone in there: hand it over as a file, or do without'
  }
  if (!isAtHome(name, unit)) return farFrom(name)
  if (!ofTypes && /^node:https?$/.test(name)) {
    return 'that loads fetch and WebSocket, 2.4 MB: take it from base/node-http.ts'
  }
  if (builtIn || dependencies.includes(name)) return null
  return 'it is not among the dependencies of server/package.json, so a published package lacks it'
}

function isAtHome(module: string, unit: string): boolean {
  const homes = MODULE_HOMES[module]
  return homes?.some((it) => unit === it || unit.startsWith(`${it}/`)) ?? true
}

function farFrom(module: string): string {
  return `it lives in ${MODULE_HOMES[module]!.join(', ')}: go through ports`
}

function allowedByName(file: string): readonly string[] {
  if (!file.startsWith('src/')) return []
  if (file.endsWith('.contract.ts')) return ['test']
  const own = file.endsWith('.test.ts') ? TESTS_MAY_IMPORT : []
  return DECLARING.test(file) ? [...own, 'http'] : own
}

interface Import {
  readonly specifier: string
  readonly position: number
  /** Whether only types are imported, so that nothing is loaded at run time. */
  readonly ofTypes: boolean
}

/** Returns every import and re-export of a file, types included. */
export function importsOf(file: SourceFile): Import[] {
  return [...file.code.matchAll(/\b(?:from\s*|import\s*\(?\s*)(['"])( *)\1/g)].map((hit) => {
    const end = hit.index + hit[0].length - 1
    const statement = file.code.slice(file.code.lastIndexOf('import', hit.index), hit.index)
    return {
      specifier: file.text.slice(end - hit[2]!.length, end),
      position: hit.index,
      ofTypes: /^import\s+type\b/.test(statement),
    }
  })
}
