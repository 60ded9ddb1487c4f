/** Whether a parser would find a scheme and a host in `text`, and nothing to take away, turn around or guess at. */
export function isUnambiguous(text: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\/[^/?#]/i.test(text) && /^[!-[\]-~]+$/.test(text)
}

/** Host and port as the audit log has them: a name with a final dot is the same without. */
export function hostOf({ host, hostname, port }: URL): string {
  if (!hostname.endsWith('.')) return host
  const name = hostname.slice(0, -1)
  return port === '' ? name : `${name}:${port}`
}
