import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { storeContract } from '../../ports/store.contract.ts'
import { SqliteStore } from './sqlite-store.ts'

const folders: string[] = []
after(() => {
  for (const folder of folders) rmSync(folder, { recursive: true })
})

storeContract('sqlite', () => {
  const folder = mkdtempSync(join(tmpdir(), 'symbolon-'))
  folders.push(folder)
  return SqliteStore.open({ folder })
})
