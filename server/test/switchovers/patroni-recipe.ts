/** The files of docs/operate/postgres-failover.md, for the loopback of this machine. */
import { readFileSync } from 'node:fs'

export interface PatroniRecipe {
  /** Of each member: the text of its configuration. */
  readonly members: Readonly<Record<MemberName, string>>
  readonly haproxy: string
  /** Creates the user and the database of the vault. */
  readonly sql: readonly string[]
}

export type MemberName = 'db1' | 'db2'

export interface RecipePorts {
  readonly etcd: number
  readonly haproxy: number
  readonly postgres: Readonly<Record<MemberName, number>>
  readonly rest: Readonly<Record<MemberName, number>>
}

const PAGE = new URL('../../../docs/operate/postgres-failover.md', import.meta.url)

export function patroniRecipe(folder: string, ports: RecipePorts): PatroniRecipe {
  const page = readFileSync(PAGE, 'utf8')
  const haproxy = localized(blockOf(page, 'haproxy'), ports)
    .replace(/check port 8008/, `check port ${ports.rest.db1}`)
    .replace(/check port 8008/, `check port ${ports.rest.db2}`)
  const member = (name: MemberName): string => {
    const text = blockOf(page, 'yaml')
    const own = name === 'db1' ? text : text.replaceAll('10.0.0.11', '10.0.0.12')
    return localized(own, ports)
      .replace('name: db1', `name: ${name}`)
      .replace(/data_dir: .*/, `data_dir: ${folder}/${name}/data`)
      .replace(/unix_socket_directories: .*/, `unix_socket_directories: ${folder}/${name}`)
      .replace('mode: automatic', `mode: 'off'`)
  }
  return {
    members: { db1: member('db1'), db2: member('db2') },
    haproxy,
    sql: blockOf(page, 'sql')
      .split(';')
      .filter((it) => it.trim() !== ''),
  }
}

/** Every host of the page is a port of the loopback here. */
function localized(text: string, { etcd, haproxy, postgres, rest }: RecipePorts): string {
  const local: Record<string, number> = {
    '10.0.0.10:2379': etcd,
    '10.0.0.11:5432': postgres.db1,
    '10.0.0.12:5432': postgres.db2,
    '10.0.0.11:8008': rest.db1,
    '10.0.0.12:8008': rest.db2,
    '127.0.0.1:5000': haproxy,
  }
  let replaced = text.replaceAll('10.0.0.0/24', '127.0.0.0/8')
  for (const [from, port] of Object.entries(local)) {
    replaced = replaced.replaceAll(from, `127.0.0.1:${port}`)
  }
  return replaced
}

function blockOf(page: string, language: string): string {
  const [, block] = new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, 's').exec(page) ?? []
  if (block === undefined) throw new Error(`The page has no block in ${language}`)
  return block
}
