/** Whether `text` has a scheme and a host, and a URL parser would not have to remove, replace or guess anything. */
export function isUnambiguous(text: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\/[^/?#]/i.test(text) && /^[!-[\]-~]+$/.test(text)
}

/** Returns host and port as in the audit log: a final dot of the name is dropped. */
export function hostOf({ host, hostname, port }: URL): string {
  if (!hostname.endsWith('.')) return host
  const name = hostname.slice(0, -1)
  return port === '' ? name : `${name}:${port}`
}
