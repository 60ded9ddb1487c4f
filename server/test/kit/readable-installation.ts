import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  rmSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { MODULES_PACKAGE } from '../../src/adapters/jail/allowed-modules.ts'
import { folderOfPackage } from '../../src/adapters/jail/packages.ts'
import { findReactorPackages } from '../../src/adapters/jail/reactor-packages.ts'
import { canBeReadByAll } from '../../src/adapters/jail/readable.ts'

/** A Node binary, and a probe with all its imports. */
export interface Installation {
  readonly node: string
  readonly probe: string
}

const READABLE_PARENTS = [tmpdir(), '/tmp', '/var/tmp'].filter(
  (it) => existsSync(it) && canBeReadByAll([it]),
)

const PROBE = fileURLToPath(new URL('./jailed-code.probe.ts', import.meta.url))
const SERVER = path.resolve(PROBE, '../../..')
const CHECKOUT = path.dirname(SERVER)

/**
 * Returns an installation that another user can run: this one, unless root runs the tests in a checkout that other users
 * cannot read, such as one below /root or created under umask 077. Then it is a copy, removed after `test`.
 *
 * `probe` may import files of its own folder and of `src`.
 */
export function readableInstallation(
  test: { after: (fn: () => void) => void },
  probe = PROBE,
): Installation {
  const here = { node: process.execPath, probe }
  const folders = packageFolders(probe)
  const parts = [path.join(SERVER, 'src'), ...folders]
  if (process.getuid?.() !== 0 || canBeReadByAll([...Object.values(here), ...parts])) return here
  const copied = [...parts, path.dirname(probe), path.join(SERVER, 'package.json')]
  for (const parent of READABLE_PARENTS) {
    const copy = mkdtempSync(path.join(parent, 'symbolon-test-'))
    test.after(() => rmSync(copy, { recursive: true, force: true }))
    const installation = copyTo(copy, copied, probe)
    openToAll(copy)
    // A file system may be mounted with `noexec`.
    if (spawnSync(installation.node, ['-v']).status === 0) return installation
  }
  throw new Error('No temporary folder lets every user read files and run programs')
}

/** Returns an installation below a folder that only this user can enter, such as one in /root; removed after `test`. */
export function closedInstallation(test: { after: (fn: () => void) => void }): Installation {
  const folders = packageFolders(PROBE)
  const parts = [path.join(SERVER, 'src'), ...folders, path.dirname(PROBE)]
  const copy = mkdtempSync(path.join(tmpdir(), 'symbolon-test-'))
  test.after(() => rmSync(copy, { recursive: true, force: true }))
  return copyTo(copy, [...parts, path.join(SERVER, 'package.json')], PROBE)
}

function copyTo(copy: string, parts: readonly string[], probe: string): Installation {
  const pathInCopy = (file: string): string => path.join(copy, path.relative(CHECKOUT, file))
  for (const it of parts) cpSync(it, pathInCopy(it), { recursive: true })
  // In a checkout it is a link to a folder beside the server's, which finds the same packages from there.
  const modules = path.join(copy, 'node_modules', MODULES_PACKAGE)
  cpSync(folderOfPackage(MODULES_PACKAGE, probe)!, modules, { recursive: true })
  const node = path.join(copy, 'node')
  copyFileSync(process.execPath, node)
  return { node, probe: pathInCopy(probe) }
}

/** Returns the folders of what reactors may require, and of what the launcher requires. */
function packageFolders(probe: string): readonly string[] {
  return findReactorPackages(['koffi'], probe).installed.folders
}

/** Returns a temporary folder that every user can enter, whatever TMPDIR is. */
export function readableFolder(test: { after: (fn: () => void) => void }): string {
  const folder = mkdtempSync(path.join(READABLE_PARENTS[0] ?? tmpdir(), 'symbolon-test-'))
  test.after(() => rmSync(folder, { recursive: true, force: true }))
  chmodSync(folder, 0o755)
  return folder
}

function openToAll(folder: string): void {
  chmodSync(folder, 0o755)
  for (const it of readdirSync(folder, { withFileTypes: true })) {
    const file = path.join(folder, it.name)
    if (it.isDirectory()) openToAll(file)
    else chmodSync(file, 0o755)
  }
}
