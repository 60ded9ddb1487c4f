import { readFileSync } from 'node:fs'

/** Returns the version in package.json, which lies next to both `src` and `dist`. */
export function version(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}
