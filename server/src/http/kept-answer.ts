import type { Answer } from './endpoint.ts'

/** Renders an answer as text, for sealing and storing. */
export function renderKeptAnswer({ bytes, ...answer }: Partial<Answer>): string {
  return JSON.stringify({ ...answer, ...(bytes && { base64: bytes.toString('base64') }) })
}

/** Parses the text from renderKeptAnswer(). */
export function parseKeptAnswer(text: string): Partial<Answer> {
  const { base64, ...answer } = JSON.parse(text) as Partial<Answer> & { base64?: string }
  return base64 === undefined ? answer : { ...answer, bytes: Buffer.from(base64, 'base64') }
}
