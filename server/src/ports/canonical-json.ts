/** JSON in the one form that whoever signs it and whoever verifies it agree on. */
export interface CanonicalJson {
  /**
   * Resolves with `text` as UTF-8: parsed, and written with the members of every object in the order of their names and
   * no spaces. What is no JSON comes back as it is. Long texts hold up nobody but those who wait for theirs, and of those
   * another tenant's next to not at all.
   */
  render(tenantId: string, text: string): Promise<Uint8Array>

  /** Ends what it runs. Long texts that are under way, or come later, are rejected. */
  close(): Promise<void>
}
