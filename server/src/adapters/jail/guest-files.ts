import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync, chmodSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

/** The guest's own program, where it may be read from inside. */
export interface GuestFiles {
  readonly folder: string
  readonly main: string
  remove(): void
}

/**
 * Copies the guest's program to a folder of its own, as JavaScript.
 *
 * A guest sees that folder and not where the service lies; and it need not strip types, which would cost each of
 * them a compiler's worth of memory.
 */
export function prepareGuestFiles(): GuestFiles {
  const source = fileURLToPath(new URL('./guest/main.ts', import.meta.url))
  const [home, extension] = [path.dirname(source), path.extname(source)]
  const folder = mkdtempSync(path.join(tmpdir(), 'symbolon-guest-'))
  chmodSync(folder, 0o755)
  for (const file of readdirSync(home)) {
    const name = path.basename(file, extension)
    if (name === file || name.endsWith('.test')) continue
    const text = readFileSync(path.join(home, file), 'utf8')
    const script = extension === '.ts' ? withoutTypes(text) : text
    writeFileSync(path.join(folder, `${name}.mjs`), script.replaceAll(OWN_IMPORT, '$1.mjs$2'), {
      mode: 0o644,
    })
  }
  // Where Node stops looking for what kind of modules these are.
  writeFileSync(path.join(folder, 'package.json'), '{}', { mode: 0o644 })
  return {
    folder,
    main: path.join(folder, 'main.mjs'),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

/** As Node itself does it for the service, and without its remark that the function is new. */
function withoutTypes(text: string): string {
  const emitWarning = process.emitWarning.bind(process)
  process.emitWarning = () => {}
  try {
    return stripTypeScriptTypes(text)
  } finally {
    process.emitWarning = emitWarning
  }
}

/** An import of a file beside: it ends in .ts in a checkout, in .js in a published package. */
const OWN_IMPORT = /(\bfrom '\.\/[a-z-]+)\.[jt]s(')/g
