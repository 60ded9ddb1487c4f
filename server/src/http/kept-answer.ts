import type { Answer } from './endpoint.ts'

/** Renders an answer as text, for sealing and storing; with it whatever else is to be kept. */
export function renderKeptAnswer<Kept extends Partial<Answer>>({ bytes, ...answer }: Kept): string {
  return JSON.stringify({ ...answer, ...(bytes && { base64: bytes.toString('base64') }) })
}

/** Parses the text from renderKeptAnswer(). */
export function parseKeptAnswer<Kept extends Partial<Answer>>(text: string): Kept {
  const { base64, ...answer } = JSON.parse(text) as Kept & { base64?: string }
  return (
    base64 === undefined ? answer : { ...answer, bytes: Buffer.from(base64, 'base64') }
  ) as Kept
}
