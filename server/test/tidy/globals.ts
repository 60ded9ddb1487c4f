import { findings, type SourceFile } from './source.ts'

interface GlobalRule {
  readonly pattern: RegExp
  /** The replacement to use. */
  readonly instead: string
  /** Path prefixes in which its use is allowed. */
  readonly allowed: readonly string[]
}

/** What would bypass `ports/`: time, randomness, network, environment, output, code; and patches of Node and undici. */
const RULES: readonly GlobalRule[] = [
  {
    pattern: /\bDate\.now\b|\bnew Date\b(?:\(\s*\)|(?!\s*\())|(?<!\bnew\s+|[\w$.])Date\(/g,
    instead: 'take world.clock.now() in the use case and hand the instant down',
    allowed: ['src/adapters/'],
  },
  {
    pattern: /\bperformance\s*\.\s*now\b|\bprocess\s*\.\s*(?:hrtime|uptime)\b/g,
    instead: 'take world.clock.elapsed()',
    allowed: ['src/adapters/'],
  },
  {
    pattern: bare('setTimeout|setInterval|setImmediate'),
    instead: 'take world.clock, or keep the waiting in an adapter',
    allowed: ['src/adapters/', 'src/cli/'],
  },
  {
    pattern: /\bAbortSignal\s*\.\s*timeout\b/g,
    instead: 'hand in a signal, or keep the waiting in an adapter',
    allowed: ['src/adapters/'],
  },
  {
    pattern: /\bMath\s*\.\s*random\b/g,
    instead: 'take world.random.bytes(), which is also fit for secrets',
    allowed: [],
  },
  {
    pattern:
      /\b(?:randomBytes|randomUUID|randomUUIDv7|randomInt|randomFill|randomFillSync|getRandomValues|generateKey|generateKeySync|generateKeyPair|generateKeyPairSync)\b/g,
    instead: 'take world.random.bytes()',
    allowed: ['src/adapters/'],
  },
  {
    pattern: bare('fetch(?=\\s*\\()'),
    instead: 'send it through the egress adapter, which checks where it goes',
    allowed: ['src/adapters/egress/', 'src/adapters/jail/guest/', 'src/cli/callbacks.ts'],
  },
  {
    pattern: /\bprocess\s*\.\s*env\b|\bloadEnvFile\b/g,
    instead: 'add a field to config.ts and take it from there',
    // The environment of a guest is empty, and its own.
    allowed: ['src/config.ts', 'src/adapters/jail/guest/watched-globals.ts'],
  },
  {
    pattern: bare('console(?=\\s*\\.)'),
    instead: "take world.log, or in a command the command's writer",
    allowed: ['src/cli/'],
  },
  {
    pattern: /\bprocess\s*\.\s*(?:stdout|stderr)\b/g,
    instead: "take world.log, or in a command the command's writer",
    allowed: ['src/cli/', 'src/main.ts', 'src/adapters/'],
  },
  {
    pattern: /\bgetBuiltinModule\b/g,
    instead: 'import it, so that it is seen who uses what',
    allowed: ['src/base/node-http.ts', 'src/adapters/jail/guest/hide-installation.ts'],
  },
  {
    pattern:
      /\b_(?:dump|paused)\b|\bonIncoming\b|\bgetOwnPropertySymbols\b|\.(?:_read|_write|closeIdleConnections|destroy|destroySoon|end|pause|push|read|resume|write)\s*=(?!=)/g,
    instead: 'patch Node and undici in adapters/system/patches/, whose test notices a new version',
    allowed: [
      'src/adapters/system/patches/',
      'src/adapters/jail/guest/',
      // Counts what a parser pushes.
      'src/http/connection/gather-chunks.test.ts',
    ],
  },
  {
    pattern: bare('eval(?=\\s*\\()|Function(?=\\s*\\()'),
    instead: 'parse it; code from outside runs in the jail alone',
    allowed: [],
  },
]

/** Returns, for each forbidden global in `file`, its location and the replacement to use. */
export function forbiddenGlobals(file: SourceFile): string[] {
  if (!file.path.startsWith('src/')) return []
  return RULES.filter(({ allowed }) => !allowed.some((it) => file.path.startsWith(it))).flatMap(
    ({ pattern, instead }) => findings(file, 'code', pattern, instead),
  )
}

/** Matches names that stand alone or belong to the global object, not members of anything else. */
function bare(names: string): RegExp {
  return new RegExp(`(?<![\\w$.#])(?:globalThis\\s*\\.\\s*)?(?:${names})(?![\\w$])`, 'g')
}
