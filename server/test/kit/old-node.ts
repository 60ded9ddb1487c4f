import { writeFileSync } from 'node:fs'
import path from 'node:path'

export interface OldNode {
  readonly version: string
  /** Whether it can replace its own process, by `process.execve`. */
  readonly replaces: boolean
}

/**
 * Returns the command line of a Node that reports an old version, to test the launcher on every machine.
 *
 * It is the Node of the tests: it parses newer syntax than the old one would, but the launcher sees no other difference.
 */
export function pretendOldNode(folder: string, { version, replaces }: OldNode): string[] {
  const stub = path.join(folder, `node-${version}.cjs`)
  writeFileSync(
    stub,
    `
      const versions = Object.assign({}, process.versions, { node: '${version}' })
      Object.defineProperty(process, 'versions', { value: versions })
      ${replaces ? '' : 'process.execve = undefined'}
    `,
  )
  return [process.execPath, '--require', stub]
}
