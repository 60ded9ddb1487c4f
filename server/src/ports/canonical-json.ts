/** Renders JSON in canonical form, so that signer and verifier hash the same bytes. */
export interface CanonicalJson {
  /**
   * Resolves with `text` as UTF-8: parsed, and written with the members of every object sorted by name and without spaces.
   * Invalid JSON is returned unchanged. A long text delays only other long texts, and those of another tenant hardly at all.
   */
  render(tenantId: string, text: string): Promise<Uint8Array>

  /** Stops its worker. Long texts in progress or submitted later are rejected. */
  close(): Promise<void>
}
