/** `npm run sql`: writes the SQL that is derived from the descriptions of entities, for people to read and search. */
import { writeFileSync } from 'node:fs'
import { ENTITY_SQL as POSTGRES } from '../src/adapters/storage/postgres/entity-changes.ts'
import { ENTITY_SQL as SQLITE } from '../src/adapters/storage/sqlite/entity-changes.ts'
import { renderEntitySql } from '../src/adapters/storage/entity/entity-sql.ts'

const FOLDER = new URL('../src/adapters/storage/', import.meta.url)

writeFileSync(new URL('sqlite/entities.sql', FOLDER), renderEntitySql(SQLITE))
writeFileSync(new URL('postgres/entities.sql', FOLDER), renderEntitySql(POSTGRES))
