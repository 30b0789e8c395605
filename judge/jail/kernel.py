"""Gives up rights for good: files by Landlock, system calls by seccomp, memory and time by limits, its user.

Both security modules are asked by system call and ctypes; nothing has to be installed, and nothing needs root.
Landlock: https://docs.kernel.org/userspace-api/landlock.html; seccomp: seccomp(2), and bpf(4) for the instructions.
"""

import contextlib
import ctypes
import errno
import math
import os
import platform
import resource
import signal
import stat
import struct
import sys
from collections.abc import Iterable, Iterator

NOBODIES = range(64_000, 65_000)  # users and groups that nothing else should have
LARGEST_FILE = 1 << 20  # bytes; no file should be writable, this is a backstop
MOST_FILES = 32  # open descriptors
MOST_THREADS = 512  # of a user, beyond those that exist when a worker starts
SPARED_PROCESSES = 256  # left free below every limit, but at most a quarter of what is left
MOST_SIGNALS = 64  # queued; timers count
_CGROUPS, _OWN_CGROUPS = "/sys/fs/cgroup", "/proc/self/cgroup"

_libc = ctypes.CDLL(None, use_errno=True)
_fork = ctypes.PyDLL(None, use_errno=True).fork  # called with the interpreter's lock held, like `os.fork`
_MACHINE = platform.machine()

if sys.platform == "linux":  # so that no object has to be made for each number
    _libc.prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP = 1, 4, 38, 22

_proc = "/proc/"

Limit = tuple[int, tuple[int, int]]  # number, (soft, hard)


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _prctl(option: int, value: int = 0, more: int = 0) -> None:
    _checked(_libc.prctl(option, value, more, 0, 0), "prctl")


def fork() -> int:
    """Forks this process, which must have no other thread. Returns 0 in the child, its ID here. Raises OSError.

    `os.fork` would then put Python's locks, threads and random numbers in order, which nothing has left in disorder
    where there is one thread: that writes to as many pages as a small program does, and each of them is copied.
    """
    return _checked(_fork(), "fork")


def own_processes() -> int:
    """Hides /proc from all but this process. Returns a file to which the last process ID is written. Raises OSError.

    Otherwise numbers would tell a program how many processes and threads others have had.
    """
    global _proc
    os.chdir("/proc")
    _proc = ""
    _libc.umount2(b"sys", 2)  # where it is covered by itself, to be read only
    last = os.open("sys/kernel/ns_last_pid", os.O_WRONLY | os.O_CLOEXEC)
    _checked(_libc.mount(b"none", b"/proc", b"tmpfs", ctypes.c_ulong(1), None), "mount")  # read-only
    return last


def give_up_capabilities() -> None:
    """Gives up what this process may do beyond its user's rights."""
    _checked(_libc.capset(struct.pack("@Ii", 0x20080522, 0), bytes(24)), "capset")


def die_with(parent: int) -> None:
    """Has this process killed when its parent ends. Call it after any change of user, which resets the setting."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before we asked
        os._exit(1)


def hide_memory() -> None:
    """Keeps processes of the same user from reading this one's memory and open files in /proc; children inherit it."""
    _prctl(_PR_SET_DUMPABLE, 0)


def become(user: int) -> None:
    """Switches from root to a user who owns nothing. Raises OSError."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def has_capabilities(numbers: Iterable[int]) -> bool:
    """True if this process has all these Linux capabilities, of the first 32. Raises OSError."""
    sets = ctypes.create_string_buffer(24)
    _checked(_libc.capget(struct.pack("@Ii", 0x20080522, 0), sets), "capget")
    [effective] = struct.unpack_from("@I", sets)
    return all(effective >> number & 1 for number in numbers)


def set_common_limits() -> None:
    """Sets those limits that are the same for every program; children inherit them."""
    limits = {
        "CORE": 0, "FSIZE": LARGEST_FILE, "NOFILE": MOST_FILES, "MSGQUEUE": 0, "MEMLOCK": 0, "SIGPENDING": MOST_SIGNALS,
    }  # fmt: skip
    for limit in _lowered(limits):
        resource.setrlimit(*limit)


def own_limits(space: int, cpu_seconds: float, processes: int) -> list[Limit]:
    """Returns the limits of one program, for `resource.setrlimit`.

    `space`: bytes of address space. `cpu_seconds`: a backstop after the zygote's clock. `processes`: counts all of
    this user's, threads included, wherever they were started.
    """
    seconds = math.ceil(cpu_seconds) + 1
    return _lowered({"AS": space, "CPU": (seconds, seconds + 1), "NPROC": processes})


def _lowered(limits: dict[str, int | tuple[int, int]]) -> list[Limit]:
    """Returns the limits by number, none of them above what this process may have."""
    result = []
    for name, value in limits.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        ceiling = resource.getrlimit(kind)[1]
        soft, hard = value if isinstance(value, tuple) else (value, value)
        if ceiling != resource.RLIM_INFINITY:
            soft, hard = min(soft, ceiling), min(hard, ceiling)
        result.append((kind, (soft, hard)))
    return result


def most_threads(sharers: int) -> int:
    """Returns how many processes and threads each of `sharers` may have so that together they cannot use up a limit.

    The limits are this user's, the container's and the machine's.
    """
    mine = resource.getrlimit(resource.RLIMIT_NPROC)[0] if os.geteuid() else 0  # root is exempt
    left = [mine - threads_of(os.geteuid())] if mine > 0 else []
    for folder in _cgroups("pids"):
        left += [_numbers(f"{folder}/pids.max", math.inf)[0] - _numbers(f"{folder}/pids.current", 0)[0]]
    left += [_numbers("/proc/sys/kernel/pid_max", 1 << 15)[0]]
    spared = min(SPARED_PROCESSES, min(left) // 4)
    return int(max(1, min(MOST_THREADS, (min(left) - spared) // sharers)))


def cpu_quota() -> float:
    """Returns how many cores the container may use at a time, infinity without a limit."""
    quotas = [math.inf]
    for folder in _cgroups("cpu"):
        [quota] = _numbers(f"{folder}/cpu.cfs_quota_us", -1)  # below 0: none
        [period] = _numbers(f"{folder}/cpu.cfs_period_us", 1)
        most, per = _numbers(f"{folder}/cpu.max", math.inf, 1)
        quotas += [quota / period if quota > 0 else math.inf, most / per]
    return min(quotas)


def _cgroups(controller: str) -> Iterator[str]:
    """Yields the folders of this process's cgroups that may set limits, from its own upwards.

    Version 1 has a tree for each controller, version 2 a single one.
    """
    lines = []
    with contextlib.suppress(OSError), open(_OWN_CGROUPS) as file:
        lines = file.read().splitlines()
    for line in [*lines, "0::/"]:  # a container may see its own at the root, under another name
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        parts = [part for part in path.split("/") if part]
        for base in ("", "unified", controllers or controller):
            yield from (os.path.join(_CGROUPS, base, *parts[:depth]) for depth in range(len(parts), -1, -1))


def _numbers(path: str, *otherwise: float) -> list[float]:
    """Returns the numbers in a file, infinity for "max"; `otherwise` if it cannot be read as numbers."""
    try:
        with open(path) as file:
            return [math.inf if word == "max" else float(word) for word in file.read().split()]
    except (OSError, ValueError):
        return list(otherwise)


def tried_as(user: int) -> tuple[bool, bool]:
    """Returns whether a child of root may switch to `user`, and whether the process limit then binds it.

    Root is exempt from the limit, also in a user namespace of its own.
    """
    pid = os.fork()
    if pid:
        bits = os.waitpid(pid, 0)[1] >> 8
        return bool(bits & 1), bool(bits & 2)
    bits = 0
    try:
        if os.geteuid() == 0:
            with contextlib.suppress(OSError):
                become(user)
                bits = 1
        resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
        os.fork()
    except OSError:
        bits |= 2
    finally:
        os._exit(bits)


def threads_of(user: int) -> int:
    """Counts the processes and threads of a user that are visible here."""
    count = 0
    for entry in os.scandir("/proc"):
        with contextlib.suppress(OSError):  # it has ended
            if entry.name.isdigit() and entry.stat().st_uid == user:
                count += len(os.listdir(f"/proc/{entry.name}/task"))
    return count


def read_proc(name: str) -> bytes:
    """Returns the content of a file of at most 4 KB in /proc, in a fraction of the time that a file object takes."""
    fd = os.open(_proc + name, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 4096)
    finally:
        os.close(fd)


def mapped_bytes() -> int:
    """Returns this process's address space in bytes: the interpreter's share is not charged to the program."""
    return int(read_proc("self/statm").split()[0]) * resource.getpagesize()


# --- Landlock ---

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on every architecture
_WRITE_FILE, _READ_FILE, _READ_DIR, _TRUNCATE, _IOCTL_DEV = 1 << 1, 1 << 2, 1 << 3, 1 << 14, 1 << 15
_OF_FILES = 1 | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV  # rights that a single file can have


def landlock_abi() -> int:
    """Returns the version of Landlock that the kernel offers, 0 without it."""
    return max(0, _libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1))


def landlock_ruleset(readable: Iterable[str], listed: Iterable[str] = ()) -> int:
    """Returns the file descriptor of a ruleset. Raises OSError.

    It allows reading below `readable`, seeing names below `listed`, reading /dev/urandom, and reading and writing
    /dev/null; nothing else.
    """
    abi = landlock_abi()
    rights = (1 << (13 if abi < 2 else 14 if abi < 3 else 15 if abi < 5 else 16)) - 1  # every right of that version
    attributes = [rights, *([3] if abi >= 4 else []), *([3] if abi >= 6 else [])]  # files, TCP, signals and sockets
    packed = struct.pack(f"={len(attributes)}Q", *attributes)
    ruleset = _checked(
        _libc.syscall(_CREATE_RULESET, packed, ctypes.c_size_t(len(packed)), 0), "landlock_create_ruleset"
    )
    wanted = dict.fromkeys(listed, _READ_DIR) | dict.fromkeys(readable, _READ_FILE | _READ_DIR)
    wanted |= {"/dev/null": _READ_FILE | _WRITE_FILE | _TRUNCATE, "/dev/urandom": _READ_FILE}
    for path, allowed in wanted.items():
        try:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:  # not every system has /lib64 or /usr/share/zoneinfo
            continue
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            allowed &= _OF_FILES
        rule = struct.pack("=Qi", allowed & rights, fd)
        _checked(_libc.syscall(_ADD_RULE, ruleset, 1, rule, 0), f"landlock_add_rule {path}")
        os.close(fd)
    return ruleset


def enter_landlock(ruleset: int) -> None:
    """Restricts this process to the ruleset. Raises OSError."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)  # which the kernel requires before any filter
    _checked(_libc.syscall(_RESTRICT_SELF, ruleset, 0), "landlock_restrict_self")


# --- seccomp ---

# Numbers on x86_64 and aarch64. Absent on purpose: whatever makes a process, a socket or a file, and all that Landlock
# does not cover, or not in every version: truncate, unlink, rename, chmod, utime, setxattr and their relatives. Nor is
# there what sends signals, as timer_create does: whom SIGKILL ends, the kernel ends for a lack of memory. Nor what
# shows numbers that another program can move: pipes, whose inodes are counted for the whole machine, and sysinfo; or
# moves them: fadvise64 drops files of the library from memory.
_ALLOWED = """
read:0:63 write:1:64 readv:19:65 writev:20:66 pread64:17:67 close:3:57 fstat:5:80 lseek:8:62 mmap:9:222
mprotect:10:226 munmap:11:215 mremap:25:216 madvise:28:233 brk:12:214 rt_sigaction:13:134 rt_sigprocmask:14:135
rt_sigreturn:15:139 sigaltstack:131:132 rt_sigtimedwait:128:137 rt_sigsuspend:130:133 rt_sigpending:127:136
restart_syscall:219:128 pause:34:- getdents64:217:61 getcwd:79:17 dup:32:23 dup2:33:- dup3:292:24
eventfd2:290:19 select:23:- pselect6:270:72 poll:7:- ppoll:271:73 epoll_create1:291:20
epoll_ctl:233:21 epoll_wait:232:- epoll_pwait:281:22 sched_yield:24:124 sched_getaffinity:204:123 nanosleep:35:101
clock_getres:229:114 gettimeofday:96:169 time:201:- times:100:153 alarm:37:- setitimer:38:103 getitimer:36:102
timerfd_create:283:85 timerfd_settime:286:86 getpid:39:172 gettid:186:178 getppid:110:173 getuid:102:174
geteuid:107:175 getgid:104:176 getegid:108:177 getresuid:118:148 getresgid:120:150 getgroups:115:158 getpgrp:111:-
getpgid:121:155 getsid:124:156 uname:63:160 getrlimit:97:163 getrusage:98:165 futex:202:98
futex_waitv:449:449 set_robust_list:273:99 rseq:334:293 getrandom:318:278 arch_prctl:158:- set_tid_address:218:96
membarrier:324:283 exit:60:93 exit_group:231:94 stat:4:- lstat:6:- newfstatat:262:79
statx:332:291 access:21:- faccessat:269:48 faccessat2:439:439 readlink:89:- readlinkat:267:78 chdir:80:49
"""
_CONDITIONAL = """
clock_gettime:228:113 clock_nanosleep:230:115
open:2:- openat:257:56 clone:56:220 prlimit64:302:261 fcntl:72:25 ioctl:16:29 prctl:157:167
"""
_ABSENT = "clone3:435:435 openat2:437:437"  # libraries fall back to the older call

_ARCHITECTURES = {"x86_64": (1, 0xC000003E), "aarch64": (2, 0xC00000B7)}  # column of numbers, AUDIT_ARCH
_LOAD, _AND, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x54, 0x15, 0x06
_ALLOW, _KILL_PROCESS = (_RETURN, 0, 0, 0x7FFF0000), (_RETURN, 0, 0, 0x80000000)
_REFUSE, _UNKNOWN = ((_RETURN, 0, 0, 0x00050000 | number) for number in (errno.EPERM, errno.ENOSYS))

_O_ACCMODE, _O_TRUNC = 3, 0o1000
_CLONE_THREAD, _CLONE_NAMESPACES = 0x10000, 0x7E020080

Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, operand
_Condition = tuple[int, int, int, bool]  # offset in seccomp_data, mask, value, whether it must be equal


def _low(argument: int) -> int:
    """Returns the offset of an argument's lower half: the kernel reads no more than that of an int."""
    return 16 + 8 * argument


# A call passes if all conditions of one of its alternatives hold.
_RULES: dict[str, list[list[_Condition]]] = {
    # O_RDONLY | O_TRUNC needs no right to write before Landlock's version 3, and empties the file
    "open": [[(_low(1), _O_TRUNC, 0, True)], [(_low(1), _O_ACCMODE, 0, False)]],
    "openat": [[(_low(2), _O_TRUNC, 0, True)], [(_low(2), _O_ACCMODE, 0, False)]],
    "clone": [[(_low(0), _CLONE_THREAD | _CLONE_NAMESPACES, _CLONE_THREAD, True)]],
    # not other processes' CPU time, whose clocks have negative numbers
    "clock_gettime": [[(_low(0), 1 << 31, 0, True)]],
    "clock_nanosleep": [[(_low(0), 1 << 31, 0, True)]],
    # only to read, but for the size of the stack, which right programs raise before they recurse; all memory is limited
    "prlimit64": [
        [(_low(0), 0xFFFFFFFF, 0, True), (_low(2), 0xFFFFFFFF, 0, True), (_low(2) + 4, 0xFFFFFFFF, 0, True)],
        [(_low(0), 0xFFFFFFFF, 0, True), (_low(1), 0xFFFFFFFF, 3, True)],
    ],
    "fcntl": [[(_low(1), 0xFFFFFFFF, value, True)] for value in (0, 1, 2, 3, 4, 1030)],  # no locks, leases, pipe sizes
    "ioctl": [[(_low(1), 0xFFFFFFFF, value, True)] for value in (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)],
    "prctl": [[(_low(0), 0xFFFFFFFF, value, True)] for value in (15, 16)],  # a thread's name
}


def seccomp_filter(machine: str = _MACHINE) -> bytes:
    """Returns the allow-list as a BPF program. Raises OSError for a machine with unknown system call numbers."""
    if machine not in _ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"no system call numbers for {machine}")
    column, architecture = _ARCHITECTURES[machine]

    def numbers(table: str) -> dict[str, int]:
        rows = [entry.split(":") for entry in table.split()]
        return {row[0]: int(row[column]) for row in rows if row[column] != "-"}

    actions = {number: [_ALLOW] for number in numbers(_ALLOWED).values()}
    for name, number in numbers(_CONDITIONAL).items():
        actions[number] = _alternatives(_RULES[name])
    for number in numbers(_ABSENT).values():
        actions[number] = [_UNKNOWN]
    program = [(_LOAD, 0, 0, 4), (_JUMP_IF_EQUAL, 1, 0, architecture), _KILL_PROCESS, (_LOAD, 0, 0, 0)]
    for number, action in actions.items():
        program += [(_JUMP_IF_EQUAL, 0, len(action), number), *action]
    program.append(_REFUSE)
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in program)


def _alternatives(alternatives: list[list[_Condition]]) -> list[Instruction]:
    """Returns code that allows a call if one alternative holds fully, else EPERM; built backwards: jumps go forward."""
    program = [_REFUSE]
    for conditions in reversed(alternatives):
        block = [_ALLOW]
        for offset, mask, value, equal in reversed(conditions):
            past = len(block)
            jump = (_JUMP_IF_EQUAL, 0, past, value) if equal else (_JUMP_IF_EQUAL, past, 0, value)
            block = [(_LOAD, 0, 0, offset), (_AND, 0, 0, mask), jump, *block]
        program = block + program
    return program


def enter_seccomp(program: bytes) -> None:
    """Restricts this process by a filter of `seccomp_filter`. Raises OSError."""
    code = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog: a count of instructions, padding, their address
    header = ctypes.create_string_buffer(struct.pack("@HP", len(program) // 8, ctypes.addressof(code)))
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    _prctl(_PR_SET_SECCOMP, 2, ctypes.addressof(header))
