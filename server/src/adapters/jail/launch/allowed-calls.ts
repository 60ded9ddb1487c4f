import type { CallName } from './syscalls.ts'

/** A system call that a guest may make, and with which arguments. */
export interface AllowedCall {
  readonly name: CallName
  /** Conditions that must all hold; without any, every argument is allowed. */
  readonly only?: readonly ArgumentCondition[]
}

/** The low 32 bits of the argument with this index, under `mask`, are one of `anyOf`. */
export interface ArgumentCondition {
  readonly argument: number
  readonly mask?: number
  readonly anyOf: readonly number[]
  /** The argument is as wide as a pointer, and its upper half must be zero. */
  readonly wide?: true
}

/** Holds the runtime for the launcher's `execveat`. Above RLIMIT_NOFILE, so the guest can never use this number. */
export const RUNTIME_DESCRIPTOR = 511

export const AT_EMPTY_PATH = 0x1000

/**
 * The system calls that Node needs to run JavaScript that computes and uses the descriptors it was given, recorded from
 * runs, and no others. They create or connect no socket, write or rename no file, start no process, and signal only the
 * guest itself. `pid` is the guest's.
 */
export function allowedCalls(pid: number): AllowedCall[] {
  return [
    ...FREE.map((name) => ({ name })),
    { name: 'mmap', only: [{ argument: 3, mask: SHARED_ANONYMOUS, anyOf: NOT_SHARED_ANONYMOUS }] },
    { name: 'openat', only: [{ argument: 2, mask: OPEN_MORE_THAN_READ, anyOf: [0] }] },
    { name: 'clone', only: [{ argument: 0, anyOf: THREAD_FLAGS }] },
    { name: 'ioctl', only: [{ argument: 1, anyOf: IOCTLS }] },
    { name: 'fcntl', only: [{ argument: 1, anyOf: FCNTLS }] },
    { name: 'prctl', only: [{ argument: 0, anyOf: PRCTLS }] },
    {
      name: 'prlimit64',
      only: [
        { argument: 0, anyOf: [0] },
        { argument: 2, anyOf: [0], wide: true },
      ],
    },
    { name: 'kill', only: [{ argument: 0, anyOf: [pid] }] },
    { name: 'tgkill', only: [{ argument: 0, anyOf: [pid] }] },
    {
      name: 'execveat',
      only: [
        { argument: 0, anyOf: [RUNTIME_DESCRIPTOR] },
        { argument: 4, anyOf: [AT_EMPTY_PATH] },
      ],
    },
  ]
}

/** Most frequent calls first: the kernel evaluates a filter from its start. */
const FREE: readonly CallName[] = [
  'read',
  'write',
  'futex',
  'epoll_pwait',
  'epoll_wait',
  'madvise',
  'mprotect',
  'munmap',
  'getpid',
  'gettid',
  'clock_gettime',
  'writev',
  'readv',
  'epoll_ctl',
  'close',
  'statx',
  'fstat',
  'newfstatat',
  'pread64',
  'lseek',
  'mremap',
  'brk',
  'rt_sigaction',
  'rt_sigprocmask',
  'rt_sigreturn',
  'sigaltstack',
  'sched_yield',
  'getrandom',
  'clock_getres',
  'clock_nanosleep',
  'nanosleep',
  'gettimeofday',
  'time',
  'times',
  'restart_syscall',
  'membarrier',
  'rseq',
  'set_robust_list',
  'set_tid_address',
  'arch_prctl',
  'exit',
  'exit_group',
  'epoll_create1',
  'eventfd2',
  'pipe2',
  'dup',
  'dup2',
  'dup3',
  'poll',
  'ppoll',
  'getdents64',
  'getcwd',
  'readlink',
  'readlinkat',
  'access',
  'faccessat',
  'faccessat2',
  'uname',
  'sysinfo',
  'getrusage',
  'sched_getaffinity',
  'getuid',
  'geteuid',
  'getgid',
  'getegid',
  'getresuid',
  'getresgid',
  'getgroups',
  'getppid',
  'capget',
  'getsockopt',
  'getsockname',
  'getpeername',
  'shutdown',
  'pkey_alloc',
  'pkey_mprotect',
  'pkey_free',
]

/** MAP_SHARED and MAP_ANONYMOUS, not both: such memory would not count as the guest's own. */
const SHARED_ANONYMOUS = 0x01 | 0x20
const NOT_SHARED_ANONYMOUS = [0x20, 0, 0x01]

/** O_ACCMODE, O_CREAT, O_TRUNC, O_APPEND, O_TMPFILE, O_PATH: any of these asks for more than reading. */
const OPEN_MORE_THAN_READ = 0x3 | 0x40 | 0x200 | 0x400 | 0x400000 | 0x200000

/** A thread as glibc and musl create one: no new process, no namespace. */
const THREAD_FLAGS = [0x3d0f00, 0x7d0f00]

/** FIONREAD, FIONBIO, FIONCLEX, FIOCLEX, TCGETS, TIOCGWINSZ. */
const IOCTLS = [0x541b, 0x5421, 0x5450, 0x5451, 0x5401, 0x5413]

/** F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD, F_DUPFD_CLOEXEC. No F_SETOWN, which sends signals. */
const FCNTLS = [1, 2, 3, 4, 0, 1030]

/** PR_SET_NAME, PR_GET_NAME, PR_SET_VMA, PR_CAPBSET_READ, PR_GET_DUMPABLE. */
const PRCTLS = [15, 16, 0x53564d41, 23, 3]
