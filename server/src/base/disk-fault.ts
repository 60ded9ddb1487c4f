/**
 * Returns why the system refused to use a file or a folder, if the disk or the user's rights are the cause; null for any other
 * error. Worded to follow the name of the file and a colon.
 */
export function diskFaultOf(error: unknown): string | null {
  return (error instanceof Error && 'code' in error && REASONS[String(error.code)]) || null
}

const REASONS: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk there is full',
  EDQUOT: 'the quota of the disk there is used up',
  EFBIG: 'the file would be larger than files may be (ulimit -f)',
  EROFS: 'the file system there is read-only',
  EIO: 'the disk there reports an error',
  EACCES: 'the user that this runs as may not',
  EPERM: 'the user that this runs as may not',
}
