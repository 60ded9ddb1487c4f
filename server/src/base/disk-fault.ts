/**
 * Returns why the system refused to use a file or a folder, if the disk or the user's rights are the cause; null for any other
 * error. Worded to follow the name of the file and a colon.
 */
export function diskFaultOf(error: unknown): string | null {
  return (error instanceof Error && 'code' in error && REASONS[String(error.code)]) || null
}

const REASONS: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  EFBIG: 'the file would exceed the file size limit (ulimit -f)',
  EROFS: 'the file system is read-only',
  EIO: 'the disk reports an I/O error',
  EACCES: 'the current user has no permission',
  EPERM: 'the current user has no permission',
}
