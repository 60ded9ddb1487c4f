/**
 * A probe that makes a fast disk slow: the writer's one sync a commit takes a millisecond more.
 */
const never = new Int32Array(new SharedArrayBuffer(4))

export default function slowSync(point: string): void {
  if (point === 'committing') Atomics.wait(never, 0, 0, 1)
}
