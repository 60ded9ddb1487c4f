/** The commands of the `symbolon` program. Each command's code is loaded only when it runs. */
import type { Command } from './command.ts'

export const COMMANDS: readonly Command[] = [
  {
    name: 'serve',
    about:
      'Start the service; on the first start also create the data folder, the root key and a tenant',
    flags: {},
    load: async () => (await import('./serve.ts')).serve,
  },
  {
    name: 'init',
    about:
      'Create a tenant and print its management key (--name N, --plan enterprise|standard, --json)',
    flags: { json: 'boolean', name: 'string', plan: 'string' },
    load: async () => (await import('./init.ts')).init,
  },
  {
    name: 'verify',
    about:
      'Decrypt every value and name the damaged ones, while it serves (--tenant ID, --resume FILE, --json)',
    flags: { json: 'boolean', tenant: 'string', resume: 'string' },
    load: async () => (await import('./verify.ts')).verify,
  },
  {
    name: 'doctor',
    about: 'Check the installation, and say how to fix each problem (--json, --strict)',
    flags: { json: 'boolean', strict: 'boolean' },
    load: async () => (await import('./doctor/doctor.ts')).doctor,
  },
  {
    name: 'fields',
    about: 'Print the script tag of the card fields, with its integrity hash (--json)',
    flags: { json: 'boolean' },
    load: async () => (await import('./fields.ts')).fields,
  },
  {
    name: 'backup',
    about:
      'Write an encrypted copy of the data, while it serves (--to FILE --recipient age1..., which can be repeated; --no-verify)',
    flags: { to: 'string', recipient: 'list', 'no-verify': 'boolean' },
    load: async () => (await import('./backup.ts')).backupCommand,
  },
  {
    name: 'backup key',
    about:
      'Make a key to encrypt backups to: the secret goes to --to FILE, the recipient is printed',
    flags: { to: 'string' },
    load: async () => (await import('./backup.ts')).backupKey,
  },
  {
    name: 'restore',
    about:
      'Make a data folder of a backup (--from FILE --identity FILE, --all to decrypt everything, --skip-damaged)',
    flags: { from: 'string', identity: 'string', all: 'boolean', 'skip-damaged': 'boolean' },
    load: async () => (await import('./restore.ts')).restore,
  },
  {
    name: 'migrate',
    about: 'Move everything to PostgreSQL, or go on with it (--from sqlite --to postgres)',
    flags: { from: 'string', to: 'string' },
    load: async () => (await import('./migrate.ts')).migrateCommand,
  },
  {
    name: 'keys create-root',
    about: 'Write a new root key to a file, for replacing the one in use (--to FILE)',
    flags: { to: 'string' },
    load: async () => (await import('./keys-create-root.ts')).keysCreateRoot,
  },
  {
    name: 'keys rotate',
    about: 'Replace data keys (--tenant ID for one), or with --root the root key, while it serves',
    flags: { root: 'boolean', tenant: 'string' },
    load: async () => (await import('./keys-rotate.ts')).keysRotate,
  },
  {
    name: 'keys recover',
    about: 'Create a management key for a tenant that lost its own (--tenant T, --application ID)',
    flags: { application: 'string', json: 'boolean', tenant: 'string' },
    load: async () => (await import('./keys-recover.ts')).keysRecover,
  },
  {
    name: 'audit verify',
    about:
      'Verify that the audit log is intact, while it serves (--against FILE..., --tenant ID, --tip NUMBER:HASH, --resume FILE, --json)',
    flags: {
      against: 'string',
      json: 'boolean',
      tenant: 'string',
      tip: 'string',
      resume: 'string',
    },
    takesWords: true,
    load: async () => (await import('./audit-verify.ts')).auditVerify,
  },
  {
    name: 'callbacks list',
    about: 'List dead-letter callbacks (--api-key-file FILE, --json)',
    flags: { 'api-key-file': 'string', json: 'boolean' },
    load: async () => (await import('./callbacks.ts')).callbacksList,
  },
  {
    name: 'callbacks replay',
    about: 'Deliver callbacks after all (--api-key-file FILE, and --id ID or --all)',
    flags: { 'api-key-file': 'string', id: 'string', all: 'boolean' },
    load: async () => (await import('./callbacks.ts')).callbacksReplay,
  },
  {
    name: 'configuration protect',
    about:
      'Mark a stored string of a reactor or a proxy as secret (--reactor ID or --proxy ID, --key NAME, --tenant T)',
    flags: { key: 'string', proxy: 'string', reactor: 'string', tenant: 'string' },
    load: async () => (await import('./configuration-protect.ts')).configurationProtect,
  },
  {
    name: 'reactor run',
    about:
      'Run the code of a reactor (FILE, --args FILE, --configuration FILE, --watch, --level L)',
    flags: { args: 'string', configuration: 'string', watch: 'boolean', level: 'string' },
    takesWords: true,
    load: async () => (await import('./reactor-run.ts')).reactorRun,
  },
]
