import { hash } from 'node:crypto'
import { readConfig } from '../config.ts'
import type { RunCommand } from './command.ts'
import { openFieldBuilds } from './open-field-builds.ts'

/**
 * `symbolon fields`: prints how a page loads card fields, with the hash that makes browsers refuse any other script
 * (Subresource Integrity). The URL is that of SYMBOLON_FIELDS_URL, or else of SYMBOLON_PUBLIC_URL.
 */
export const fields: RunCommand = async ({ flags, out, err }) => {
  const { publicUrl, fieldsUrl, port } = readConfig(flags)
  const builds = openFieldBuilds({
    error: (_, error) => err(`symbolon: Cannot build the card fields: ${String(error)}`),
  })
  const build = await builds.current()
  const script = build === null ? null : await builds.read(build, 'fields.js')
  if (script === null) {
    if (build !== null) err(`symbolon: Cannot read the card fields of build ${build}`)
    return 1
  }
  const url = fieldsUrl ?? publicUrl
  const src = `${url ?? `http://localhost:${port}`}/fields/v1/${build}/fields.js`
  const integrity = `sha384-${hash('sha384', script.content, 'base64')}`
  if (flags['json'] !== undefined) {
    out(JSON.stringify({ src, integrity }))
    return 0
  }
  out(`src        ${src}`)
  out(`integrity  ${integrity}`)
  out('')
  out(`<script type="module" src="${src}" integrity="${integrity}" crossorigin></script>`)
  if (url === null) {
    err(
      'SYMBOLON_PUBLIC_URL is not set: pages on other machines need the URL they reach this vault by.',
    )
  }
  return 0
}
