/**
 * Returns the text with control characters replaced, for ids from a database: written by someone else, they could forge lines or
 * control the terminal.
 */
export function printable(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, '\ufffd')
}
