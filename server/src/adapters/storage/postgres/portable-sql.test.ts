/** Keeps the SQL to what databases that only speak PostgreSQL's language support too. */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'

const FOLDER = import.meta.dirname

/** docs/operate/postgres.md gives the reasons. */
const AVOIDED: Readonly<Record<string, RegExp>> = {
  'a trigger': /\bCREATE\s+(OR\s+REPLACE\s+)?(CONSTRAINT\s+)?TRIGGER\b/i,
  'a procedure': /\bCREATE\s+(OR\s+REPLACE\s+)?(FUNCTION|PROCEDURE)\b|\bDO\s+\$\$|plpgsql/i,
  'LISTEN and NOTIFY': /\b(LISTEN|UNLISTEN|NOTIFY)\b|pg_notify/,
  'a sequence':
    /\b(SMALL|BIG)SERIAL\b|^\s+(?!SELECT\b)\w+ SERIAL(?=\s*(,|NOT\b|PRIMARY\b|$))|\bAS\s+IDENTITY\b|nextval|CREATE\s+SEQUENCE/im,
  'a table lock': /\bLOCK\s+TABLE\b/i,
  'an extension': /\bCREATE\s+EXTENSION\b/i,
  'an advisory lock': /pg_(try_)?advisory/,
  'a foreign key': /\bREFERENCES\b|\bFOREIGN\s+KEY\b/,
  'a temporary table': /\bCREATE\s+(LOCAL\s+)?TEMP/i,
  'a cursor': /\bDECLARE\s+\w+\s+CURSOR\b/i,
  'a row by its place': /\bctid\b/,
  "the database's clock":
    /\b(?:now|(?:clock|statement|transaction)_timestamp|timeofday)\(\)|\b(?:CURRENT|LOCAL)_(?:TIME|DATE)|\bDEFAULT\s+'now'/i,
}

/** The one exception allowed per file. */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  'migrate.ts': 'an advisory lock',
  // Compared with the clock of the machine, for doctor.
  'inspection.ts': "the database's clock",
}

function sources(): string[] {
  return globSync(['*.ts', 'migrations/*.sql'], { cwd: FOLDER }).filter(
    (it) => !it.includes('.test.'),
  )
}

test('the SQL does without what databases of the same language lack', () => {
  const files = sources()
  assert.ok(files.length > 20)
  const found = files.flatMap((file) => {
    const text = readFileSync(path.join(FOLDER, file), 'utf8').replaceAll(
      /^\s*(--|\/\/|\*|\/\*).*$/gm,
      '',
    )
    return Object.entries(AVOIDED)
      .filter(([what, pattern]) => pattern.test(text) && EXCEPTIONS[file] !== what)
      .map(([what]) => `${file} uses ${what}`)
  })
  assert.deepEqual(found, [])
})

test('each exception is one', () => {
  for (const [file, what] of Object.entries(EXCEPTIONS)) {
    assert.match(readFileSync(path.join(FOLDER, file), 'utf8'), AVOIDED[what]!)
  }
})

test('every key of a table with rows of tenants begins with the tenant, but for hashes that find out whose they are', () => {
  const tables = readFileSync(path.join(FOLDER, 'schema.sql'), 'utf8')
    .split(/^CREATE TABLE /m)
    .slice(1)
  const keys = tables.flatMap((table) => {
    if (!/^ {2}tenant uuid/m.test(table)) return []
    return [
      ...table.matchAll(/^\s*(?:PRIMARY KEY|UNIQUE) \((.*)\)|^CREATE UNIQUE INDEX .*? \((.*?)\)/gm),
    ].map((it) => `${table.split(' ')[0]}: ${it[1] ?? it[2]}`)
  })
  assert.ok(keys.length > 15)
  const others = keys.filter((it) => !/: tenant\b/.test(it))
  assert.deepEqual(others, ['application_keys: hash', 'proxies: hash', 'sessions: hash'])
})
