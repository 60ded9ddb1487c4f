/** Returns the form in which texts are equal that differ in upper and lower case only. */
export function foldCase(text: string): string {
  return text.toLowerCase()
}
