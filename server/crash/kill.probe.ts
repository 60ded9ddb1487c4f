import { isArmed } from './points.ts'

/**
 * Kills its own process at a point of the write path: `kill.probe.ts?point=committed&nth=3&folder=...`.
 *
 * Runs on the writer's thread, so that the process dies at that very step of the write.
 */
const { searchParams } = new URL(import.meta.url)
const fatal = searchParams.get('point')
const folder = searchParams.get('folder')!
let left = Number(searchParams.get('nth'))

export default function killAt(point: string): void {
  if (point === fatal && isArmed(folder) && --left === 0) process.kill(process.pid, 'SIGKILL')
}
