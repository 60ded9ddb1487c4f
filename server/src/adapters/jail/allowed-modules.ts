/** Built-in modules that code may require: behind the walls, none does more than it is documented to do. */
export const BUILT_INS = [
  'assert',
  'assert/strict',
  'async_hooks',
  'buffer',
  'console',
  'constants',
  'crypto',
  'diagnostics_channel',
  'dns',
  'dns/promises',
  'events',
  'http',
  'https',
  'net',
  'os',
  'path',
  'path/posix',
  'perf_hooks',
  'process',
  'punycode',
  'querystring',
  'stream',
  'stream/consumers',
  'stream/promises',
  'stream/web',
  'string_decoder',
  'timers',
  'timers/promises',
  'tls',
  'url',
  'util',
  'util/types',
  'zlib',
] as const

/** The client behind `bt`, which the service depends on itself. */
export const CLIENT_PACKAGE = '@basis-theory/basis-theory-js'

/** The package whose dependencies are the bundled packages; operators may leave it out. Decision 0097. */
export const MODULES_PACKAGE = '@symbolon/reactor-modules'

/** Bundled packages, each because existing reactor code requires it. */
export const BUNDLED_PACKAGES = [
  'axios',
  'crypto-js',
  'json-stable-stringify',
  'lodash',
  'node-fetch',
  'node-forge',
  'pdf-lib',
  'uuid',
  'xmlbuilder2',
] as const
