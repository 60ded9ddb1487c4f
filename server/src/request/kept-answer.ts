import type { Answer } from './response.ts'

/** Renders an answer as text, for sealing and storing. */
export function renderKeptAnswer({ bytes, ...answer }: Partial<Answer>): string {
  if (bytes === undefined) return JSON.stringify(answer)
  // By hand: the bytes may be megabytes, and nothing in base64 needs escaping.
  const rest = JSON.stringify(answer).slice(1)
  return `{"base64":"${bytes.toString('base64')}"${rest === '}' ? rest : `,${rest}`}`
}

/** Parses the text from renderKeptAnswer(). */
export function parseKeptAnswer(text: string): Partial<Answer> {
  const { base64, ...answer } = JSON.parse(text) as Partial<Answer> & { base64?: string }
  return base64 === undefined ? answer : { ...answer, bytes: Buffer.from(base64, 'base64') }
}
