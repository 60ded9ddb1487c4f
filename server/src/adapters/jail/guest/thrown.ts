import { positionOf, type StackPosition } from './code-position.ts'

/**
 * Reduces a thrown value to JSON text with the members that the host reads. Each is converted separately: one that JSON
 * cannot express becomes null without affecting the others.
 */
export function renderThrown(
  thrown: unknown,
  bytesMax: number,
  position: StackPosition | null = positionOf(thrown),
): string {
  const members = MEMBERS.map((it) => [it, jsonOf(() => memberOf(thrown, it))] as const)
  const rest = `"position":${JSON.stringify(position)}}`
  const text = `{${members.map(([name, json]) => `"${name}":${json},`).join('')}${rest}`
  if (Buffer.byteLength(text) <= bytesMax) return text
  const message = jsonOf(() => String(memberOf(thrown, 'message')).slice(0, SHORT_CHARS))
  return `{"name":"Error","message":${message},"status":null,"errors":null,"headers":null,"body":null,${rest}`
}

const MEMBERS = ['name', 'message', 'status', 'errors', 'headers', 'body']
const SHORT_CHARS = 1_000

function memberOf(thrown: unknown, name: string): unknown {
  if (typeof thrown === 'object' && thrown !== null) return Reflect.get(thrown, name)
  return name === 'message' ? String(thrown) : null
}

function jsonOf(value: () => unknown): string {
  try {
    return JSON.stringify(value()) ?? 'null'
  } catch {
    return 'null'
  }
}
