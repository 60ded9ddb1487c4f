import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { findings, PROJECT, type SourceFile } from './source.ts'

/** Reads a document; throws an error that names it if it is missing. */
export function readDocument(file: string, what: string): string {
  try {
    return readFileSync(path.join(PROJECT, file), 'utf8')
  } catch (cause) {
    throw new Error(`${file} is missing: write it; it holds ${what}`, { cause })
  }
}

/** Returns the headings of a document as text, without code marks and closing hashes. */
export function headingsOf(document: string): string[] {
  return [...withoutFences(document).matchAll(/^#{1,6}\s+(.*?)\s*#*$/gm)].map((hit) =>
    hit[1]!.replaceAll('`', ''),
  )
}

/** Returns, for each operation without a heading like `### POST /reactors/{id}/react`, what to add. */
export function undocumentedRoutes(
  routes: readonly { readonly method: string; readonly path: string }[],
  document: string,
): string[] {
  const headings = headingsOf(document)
  return routes
    .map((it) => `${it.method} ${it.path.replaceAll(/:(\w+)/g, '{$1}')}`)
    .filter((it) => !headings.includes(it))
    .map((it) => `docs/interface.md: add the heading: ### ${it}`)
}

/** Returns, for each refusal without a heading and each heading without a refusal, what to do. */
export function undocumentedRefusals(codes: readonly string[], document: string): string[] {
  const headings = headingsOf(document)
  return [
    ...codes
      .filter((it) => !headings.includes(it))
      .map((it) => `docs/errors.md: add the heading: ### ${it}`),
    ...headings
      .filter((it) => /^[a-z]+(?:_[a-z]+)+$/.test(it) && !codes.includes(it))
      .map((it) => `docs/errors.md: ${it} is no refusal (any more): remove its section`),
  ]
}

/** Returns, for each folder without a line in the section "Code map", what to add. */
export function unmappedFolders(folders: readonly string[], document: string): string[] {
  const [, map = ''] = /^## Code map\n([^]*?)(?=^## |$(?![^]))/m.exec(document) ?? []
  return folders
    .filter((it) => !new RegExp(`(?<![\\w-])${path.basename(it)}/`).test(map))
    .map((it) => `ARCHITECTURE.md: add a line for ${path.basename(it)}/ (${it}) to the Code map`)
}

/** Returns every folder under server/src that holds source. */
export function foldersOf(files: readonly SourceFile[]): string[] {
  const folders = new Set<string>()
  for (const file of files) {
    let folder = path.posix.dirname(file.path)
    for (; folder.startsWith('src/'); folder = path.posix.dirname(folder)) {
      folders.add(`server/${folder}`)
    }
  }
  return [...folders].sort()
}

const SECTIONS = ['Context', 'Decision', 'Weighed', 'So', 'Wrong if']

/** Returns the flaws of a set of decision records, given by file name. */
export function decisionFlaws(records: Readonly<Record<string, string>>): string[] {
  const taken = new Map<string, string>()
  return Object.entries(records).flatMap(([file, text]) => {
    const [, number] = /^(\d{4})-[a-z0-9]+(?:-[a-z0-9]+)*\.md$/.exec(file) ?? []
    if (number === undefined) return [`${file}: name it NNNN-a-short-claim.md`]
    const other = taken.get(number)
    taken.set(number, file)

    const [title, ...sections] = withoutFences(text).match(/^##? .*$/gm) ?? []
    const names = sections.map((it) => it.replace(/^## /, ''))
    return [
      ...(other === undefined ? [] : [`${file}: ${other} has this number: take the next free one`]),
      ...(title?.startsWith(`# ${number} `) ? [] : [`${file}: begin with: # ${number} The claim`]),
      ...(/^Status: (?:accepted|superseded by \d{4}|proposed) ?\d{0,4}/m.test(text)
        ? []
        : [`${file}: add the line: Status: accepted YYYY-MM-DD`]),
      ...(names.join() === SECTIONS.join()
        ? []
        : [`${file}: let its sections be: ${SECTIONS.join(', ')}`]),
    ]
  })
}

/** Returns, for each decision that a comment cites and that has no record, what to do. */
export function unrecordedDecisions(
  files: readonly SourceFile[],
  numbers: readonly string[],
): string[] {
  return files.flatMap((file) =>
    findings(
      file,
      'comments',
      /\b[Dd]ecisions? \d{4}\b/g,
      'there is no such record: write it',
    ).filter((it) => !numbers.some((number) => it.includes(` ${number}:`))),
  )
}

/** Returns, for each link to a missing file of the project, what is missing. */
export function deadLinks(file: string, text: string, exists: (file: string) => boolean): string[] {
  return [...withoutFences(text).matchAll(/\]\((?!\w+:|#)([^)#\s]+)[^)]*\)/g)]
    .map((hit) => path.posix.join(path.posix.dirname(file), hit[1]!))
    .filter((it) => !exists(it))
    .map((it) => `${file}: links to ${it}, which is missing: write it, or mend the link`)
}

/** Returns every document of the project, relative to its folder. Excludes the build's copy of the README. */
export function documents(): string[] {
  return globSync('{*.md,{changes,docs,server}/**/*.md}', {
    cwd: PROJECT,
    exclude: ['**/node_modules', '**/dist', 'server/README.md'],
  }).sort()
}

function withoutFences(document: string): string {
  return document.replaceAll(/^```[^]*?^```/gm, '')
}
