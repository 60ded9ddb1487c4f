/** JSON in the one form that whoever signs it and whoever verifies it agree on. */
export interface CanonicalJson {
  /**
   * Resolves with `text` as UTF-8: parsed, and written with the members of every object in the order of their names and
   * no spaces. What is no JSON comes back as it is. Long texts hold up nobody but those who wait for them.
   */
  render(text: string): Promise<Uint8Array>

  /** Ends what it runs. What is under way is rejected. */
  close(): Promise<void>
}
