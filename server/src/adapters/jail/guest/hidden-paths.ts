import { pathToFileURL } from 'node:url'

/** A path of the installation, and what texts have in its place. */
export interface HiddenPath {
  readonly real: string
  readonly shown: string
}

/**
 * Returns a function that replaces these paths in a text, written as paths or as file URLs. A path counts only where a
 * path can begin and a name can end: `/app` is not in `https://example.com/app` and not in `/apple`.
 */
export function pathHider(paths: readonly HiddenPath[]): (text: string) => string {
  const shownOf = new Map<string, string>()
  for (const { real, shown } of paths) {
    shownOf.set(pathToFileURL(real).href, `file://${shown}`)
    shownOf.set(real, shown)
  }
  if (shownOf.size === 0) return (text) => text
  // The longest first: the others may be folders above it.
  const forms = [...shownOf.keys()].toSorted((a, b) => b.length - a.length)
  const any = forms.map((it) => it.replaceAll(/[^\w/]/g, String.raw`\$&`)).join('|')
  const pattern = new RegExp(String.raw`(?<![\w.%-])(?:${any})(?![\w-])`, 'g')
  return (text) => text.replaceAll(pattern, (it) => shownOf.get(it)!)
}
