/** Returns a form that is equal for texts that differ only in case. */
export function foldCase(text: string): string {
  return text.toLowerCase()
}
