/** Card fields of a single build, whose files are short texts. */
import { gzipSync } from 'node:zlib'
import type { FieldBuilds } from '../../src/fields/field-builds.ts'

export const STILL_BUILD = '0123456789abcdef'

export const STILL_BUILDS: FieldBuilds = {
  current: async () => STILL_BUILD,
  read: async (build, file) => {
    const content = Buffer.from(`content of ${file}`)
    return build === STILL_BUILD ? { content, gzipped: gzipSync(content) } : null
  },
}
