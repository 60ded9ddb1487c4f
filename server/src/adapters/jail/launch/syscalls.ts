/**
 * Numbers of the system calls that the launcher and guests make.
 *
 * Source: the kernel's headers, asm/unistd_64.h and asm-generic/unistd.h.
 */
export interface Machine {
  /** The architecture's constant in filters: AUDIT_ARCH_*. */
  readonly audit: number
  /** First number of a second set of calls on the same machine (x32), or null. */
  readonly foreignFrom: number | null
  readonly numbers: ReadonlyMap<string, number>
}

/** Returns null for a machine whose numbers are not listed. */
export function machineOf(arch: string): Machine | null {
  const numbers = new Map<string, number>()
  for (const [name, x64, arm64] of CALLS) {
    const number = arch === 'x64' ? x64 : arm64
    if (number !== null) numbers.set(name, number)
  }
  if (arch === 'x64') return { audit: 0xc000003e, foreignFrom: 0x40000000, numbers }
  if (arch === 'arm64') return { audit: 0xc00000b7, foreignFrom: null, numbers }
  return null
}

/** x64 and arm64; null if an architecture lacks the call. */
const CALLS = [
  ['access', 21, null],
  ['arch_prctl', 158, null],
  ['brk', 12, 214],
  ['capget', 125, 90],
  ['capset', 126, 91],
  ['clock_getres', 229, 114],
  ['clock_gettime', 228, 113],
  ['clock_nanosleep', 230, 115],
  ['clone', 56, 220],
  ['clone3', 435, 435],
  ['close', 3, 57],
  ['close_range', 436, 436],
  ['dup', 32, 23],
  ['dup2', 33, null],
  ['dup3', 292, 24],
  ['epoll_create1', 291, 20],
  ['epoll_ctl', 233, 21],
  ['epoll_pwait', 281, 22],
  ['epoll_wait', 232, null],
  ['eventfd2', 290, 19],
  ['execveat', 322, 281],
  ['exit', 60, 93],
  ['exit_group', 231, 94],
  ['faccessat', 269, 48],
  ['faccessat2', 439, 439],
  ['fcntl', 72, 25],
  ['fstat', 5, 80],
  ['futex', 202, 98],
  ['getcwd', 79, 17],
  ['getdents64', 217, 61],
  ['getegid', 108, 177],
  ['geteuid', 107, 175],
  ['getgid', 104, 176],
  ['getgroups', 115, 158],
  ['getpeername', 52, 205],
  ['getpid', 39, 172],
  ['getppid', 110, 173],
  ['getrandom', 318, 278],
  ['getresgid', 120, 150],
  ['getresuid', 118, 148],
  ['getrusage', 98, 165],
  ['getsockname', 51, 204],
  ['getsockopt', 55, 209],
  ['gettid', 186, 178],
  ['gettimeofday', 96, 169],
  ['getuid', 102, 174],
  ['ioctl', 16, 29],
  ['kill', 62, 129],
  ['landlock_add_rule', 445, 445],
  ['landlock_create_ruleset', 444, 444],
  ['landlock_restrict_self', 446, 446],
  ['lseek', 8, 62],
  ['madvise', 28, 233],
  ['membarrier', 324, 283],
  ['mmap', 9, 222],
  ['mprotect', 10, 226],
  ['mremap', 25, 216],
  ['munmap', 11, 215],
  ['nanosleep', 35, 101],
  ['newfstatat', 262, 79],
  ['openat', 257, 56],
  ['pipe2', 293, 59],
  ['pkey_alloc', 330, 289],
  ['pkey_free', 331, 290],
  ['pkey_mprotect', 329, 288],
  ['poll', 7, null],
  ['ppoll', 271, 73],
  ['prctl', 157, 167],
  ['pread64', 17, 67],
  ['prlimit64', 302, 261],
  ['read', 0, 63],
  ['readlink', 89, null],
  ['readlinkat', 267, 78],
  ['readv', 19, 65],
  ['restart_syscall', 219, 128],
  ['rseq', 334, 293],
  ['rt_sigaction', 13, 134],
  ['rt_sigprocmask', 14, 135],
  ['rt_sigreturn', 15, 139],
  ['sched_getaffinity', 204, 123],
  ['sched_setscheduler', 144, 119],
  ['sched_yield', 24, 124],
  ['seccomp', 317, 277],
  ['set_robust_list', 273, 99],
  ['set_tid_address', 218, 96],
  ['setgroups', 116, 159],
  ['setpriority', 141, 140],
  ['setresgid', 119, 149],
  ['setresuid', 117, 147],
  ['shutdown', 48, 210],
  ['sigaltstack', 131, 132],
  ['statx', 332, 291],
  ['sysinfo', 99, 179],
  ['tgkill', 234, 131],
  ['time', 201, null],
  ['times', 100, 153],
  ['uname', 63, 160],
  ['write', 1, 64],
  ['writev', 20, 66],
] as const satisfies readonly (readonly [string, number, number | null])[]

export type CallName = (typeof CALLS)[number][0]
