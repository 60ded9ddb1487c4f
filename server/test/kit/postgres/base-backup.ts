/** A base backup by SQL and a copy of the files, as `pg_basebackup` makes it, which the packages lack. */
import { spawnSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { copyFile, mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import type { Cluster } from './cluster.ts'

/** Folders whose content a new server makes itself. Source: PostgreSQL, "Making a Base Backup Using the Low Level API". */
const EMPTY = new Set(['pg_wal', 'pg_replslot', 'pg_dynshmem', 'pg_notify', 'pg_stat_tmp'])
const LEFT_OUT = new Set(['postmaster.pid', 'postmaster.opts', 'standby.signal', 'backup_label'])

/** Replaces the data of a server that does not run by the data of one that does; starts as its standby. */
export async function replaceByBackup(replaced: Cluster, running: Cluster): Promise<void> {
  const [from, to] = [join(running.folder, 'data'), join(replaced.folder, 'data')]
  const { uid, gid } = statSync(to)
  const client = new pg.Client({ connectionString: running.url })
  await client.connect()
  try {
    await client.query(`SELECT pg_backup_start('standby', true)`)
    await rm(to, { recursive: true })
    await copyFolder(from, to)
    await mkdir(join(to, 'pg_wal', 'archive_status'))
    const { rows } = await client.query<{ labelfile: string }>(
      'SELECT labelfile FROM pg_backup_stop(false)',
    )
    await writeFile(join(to, 'backup_label'), rows[0]!.labelfile)
    await writeFile(join(to, 'standby.signal'), '')
  } finally {
    await client.end()
  }
  if (process.getuid?.() === 0) spawnSync('chown', ['-R', `${uid}:${gid}`, to])
}

async function copyFolder(from: string, to: string): Promise<void> {
  await mkdir(to, { mode: 0o700 })
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, copy] = [join(from, entry.name), join(to, entry.name)]
    if (EMPTY.has(entry.name)) await mkdir(copy, { mode: 0o700 })
    else if (entry.isDirectory()) await copyFolder(source, copy)
    else if (!LEFT_OUT.has(entry.name)) await copyIfThere(source, copy)
  }
}

/** A running server removes files, and the write-ahead log has what it takes to do so again. */
async function copyIfThere(source: string, copy: string): Promise<void> {
  try {
    await copyFile(source, copy)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}
