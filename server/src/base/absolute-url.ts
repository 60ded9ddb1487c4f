/** Whether a parser would find a scheme and a host in `text`, and nothing to take away, turn around or guess at. */
export function isUnambiguous(text: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\/[^/?#]/i.test(text) && /^[!-[\]-~]+$/.test(text)
}
