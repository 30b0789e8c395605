import ctypes
import ctypes.util
import enum
import errno
import json
import math
import os
import platform
import signal
import struct
import subprocess
import sys
import threading
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from judge.jail import kernel, wire

ROOT = Path(__file__).parents[2]
MACHINES = ["x86_64", "aarch64"]


def script(source, *arguments):
    """What a Python of its own prints, as JSON: what a process gives up there, pytest keeps."""
    done = subprocess.run(
        [sys.executable, "-c", source, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0 and done.stdout, done.stderr
    return json.loads(done.stdout)


# --- wire ---


def kept(value):
    raise wire.NotPlain(f"an object of type {type(value).__name__}")


def revived(tag, content):
    return tag, content


def encoded(value):
    return wire.Encoder(kept, begun)(value)


def begun(iterator):
    return iterator, None


def decoded(body):
    return wire.WireDecoder(revived)(body)


def returned(value):
    """`value` after a journey through a frame."""
    return decoded(wire.unframed(wire.frame({"v": encoded(value)})[4:])["v"])


PLAIN = [
    None, True, False, 0, 1, -1, 2**53, -(2**53), 2**53 + 1, -(2**53) - 1, 10**4000, -(2**64),
    0.0, -0.0, 0.1, 1e308, 5e-324, math.nan, math.inf, -math.inf,
    "", "plain", "naïve \u4e2d \U0001f600", "\0\x1f\"\\\n", "\ud800", "a\udfff\ud800b",
    [], [1, [2, [3, []]]], (), (1,), ((1, 2), [3, (4,)]), {}, {"a": 1}, {(1, (2, "x")): [None]},
    {1: "int", "1": "text", None: 0, 2.5: {}}, {frozenset({1}): {2}}, set(), {7}, frozenset(), frozenset({(1, 2)}),
    deque(), deque([1, (2,), [3]]), range(0), range(5), range(10, -10, -3), range(2**70, 2**70 + 2),
    1j, complex(-0.0, math.inf), complex(math.nan, 1), b"", b"\x00\xff", bytearray(), bytearray(b"ab\x80"),
    Decimal("1.10"), Decimal("-0"), Decimal("NaN"), Decimal("-Infinity"), Decimal("1E+400"),
    Fraction(-3, 7), Fraction(2**80, 3), {"int": "0x1"}, {"handle": 3}, [{"tuple": [1]}],
    date(2024, 2, 29), datetime(2024, 2, 29, 1, 2, 3, 4), datetime(1, 1, 1, tzinfo=UTC), timedelta(-1, 2, 3),
]  # fmt: skip


@pytest.mark.parametrize("value", PLAIN, ids=lambda value: f"{type(value).__name__} {ascii(value)[:30]}")
def test_plain_data_arrives_as_it_was_sent(value):
    assert type(returned(value)) is type(value)
    assert repr(returned(value)) == repr(value)
    assert repr(returned([{"k": (value,)}])) == repr([{"k": (value,)}])


def test_what_arrives_shares_nothing_with_what_was_sent():
    value = [[1], {"a": [2]}, {3}]
    result = returned(value)
    result[0].append(0)
    result[1]["a"].append(0)
    result[2].add(0)
    assert value == [[1], {"a": [2]}, {3}]


class Colour(enum.IntEnum):
    RED = 2


class AgreesWithAll(str):
    def __eq__(self, other):
        return True

    __hash__ = str.__hash__


class LongList(list):
    def __iter__(self):
        return iter([1] * 9)

    def __len__(self):
        return 9


class Evasive(dict):
    def items(self):
        return [("forged", 1)]


class Half(float):
    def __float__(self):
        return 2.0

    def __repr__(self):
        return "9.0"


Point = namedtuple("Point", "x y")


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Colour.RED, 2),
        (Point(1, [2]), (1, [2])),
        (defaultdict(list, {"a": [1]}), {"a": [1]}),
        (Counter("aab"), {"a": 2, "b": 1}),
        (OrderedDict([(2, 1), (1, 2)]), {2: 1, 1: 2}),
        (AgreesWithAll("text"), "text"),
        (LongList([3]), [3]),
        (Evasive(a=1), {"a": 1}),
        (Half(0.5), 0.5),
        (type("Set", (set,), {})([4]), {4}),
        (type("Frozen", (frozenset,), {})([4]), frozenset({4})),
        (type("Bytes", (bytes,), {"hex": lambda self: "ff"})(b"a"), b"a"),
        (type("Array", (bytearray,), {"hex": lambda self: "ff"})(b"a"), bytearray(b"a")),
        (type("Complex", (complex,), {"real": 9.0})(1, 2), 1 + 2j),
        (type("Deque", (deque,), {})([1]), deque([1])),
        (type("Cents", (Decimal,), {"__str__": lambda self: "7"})("1.25"), Decimal("1.25")),
        (type("Third", (Fraction,), {"numerator": 5})(1, 3), Fraction(1, 3)),
        (type("Integer", (int,), {"__index__": lambda self: 9})(4), 4),
        ({AgreesWithAll("k"): Colour.RED}, {"k": 2}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_subclass_travels_as_the_builtin_that_it_extends(value, plain):
    result = returned(value)
    assert type(result) is type(plain)
    assert repr(result) == repr(plain)
    if isinstance(result, dict):
        assert [type(key) for key in result] == [type(key) for key in plain]


def test_iterators_and_views_travel_with_their_items():
    assert returned(iter([1, (2,)])) == ("iterator", ([1, (2,)], None))
    assert returned(n * n for n in range(4)) == ("iterator", ([0, 1, 4, 9], None))
    assert returned({"a": 1}.items()) == [("a", 1)]
    assert returned({"a": 1}.keys()) == ["a"]


@pytest.mark.parametrize("value", [object(), len, int, PLAIN.append, slice(1), ..., NotImplemented, memoryview(b"a")])
def test_nothing_else_is_plain_data(value):
    with pytest.raises(wire.NotPlain):
        encoded([value])


def nested(levels, wrap=lambda inner: [inner]):
    value = 1
    for _ in range(levels):
        value = wrap(value)
    return value


def test_a_value_has_a_largest_size():
    assert returned([0] * (wire.MOST_NODES - 1)) == [0] * (wire.MOST_NODES - 1)
    assert returned(nested(wire.DEEPEST)) == nested(wire.DEEPEST)
    cyclic = [1]
    cyclic.append(cyclic)
    own_key = {}
    own_key["self"] = own_key
    count = iter(int, 1)
    too_large = [
        [0] * wire.MOST_NODES, [[0] * 500] * 1000, dict.fromkeys(range(wire.MOST_NODES)), nested(wire.DEEPEST + 1),
        nested(2000), nested(70, lambda inner: (inner,)), nested(70, lambda inner: {"k": inner}), cyclic, own_key,
        count, "x" * (wire.LARGEST_VALUE + 1), ["x" * 100_000] * 50, b"x" * (wire.LARGEST_VALUE // 2 + 1),
        1 << 5 * wire.LARGEST_VALUE, range(1 << 5 * wire.LARGEST_VALUE),
    ]  # fmt: skip
    for value in too_large:
        with pytest.raises(wire.NotPlain):
            encoded(value)


def test_the_size_of_one_value_is_not_held_against_the_next():
    encode = wire.Encoder(kept, begun)
    for _ in range(3):
        encode("x" * (wire.LARGEST_VALUE - 1))
        encode([0] * (wire.MOST_NODES - 1))


WRONG_CONTENTS = [
    None, True, 1, 1.5, "z", "0x", {"a": 1}, {"ab": 1}, [[1, 2, 3]], [["unhashable"], [1]], [None, "x", {}],
    [1, 2, 3, 4],
]  # fmt: skip
RIGHT_ANYWAY = {
    "tuple": [[[1, 2, 3]], [["unhashable"], [1]], [1, 2, 3, 4]],
    "deque": [[[1, 2, 3]], [["unhashable"], [1]], [1, 2, 3, 4]],
    "timedelta": [[1, 2, 3, 4]], "set": [[1, 2, 3, 4]], "frozenset": [[1, 2, 3, 4]], "handle": [1],
}  # fmt: skip
TAGS = [
    "tuple", "set", "frozenset", "deque", "complex", "range", "fraction", "int", "float", "bytes", "bytearray",
    "decimal", "dict", "handle", "iterator", "array", "date", "datetime", "timedelta",
]  # fmt: skip


@pytest.mark.parametrize("tag", TAGS)
def test_a_tag_with_another_content_is_no_value(tag):
    wrong = [content for content in WRONG_CONTENTS if content not in RIGHT_ANYWAY.get(tag, [])]
    if tag == "handle":  # True == 1
        wrong.append(True)
    for content in wrong:
        with pytest.raises(wire.Broken):
            print(tag, content, "gave", decoded({tag: content}))
        with pytest.raises(wire.Broken):
            decoded([1, {"tuple": [{tag: content}]}])


@pytest.mark.parametrize("pairs", ["", {}, "ab", ["ab"], [{"a": 1, "b": 2}], [[1]], [[1, 2, 3]], [[[1], 2]], [None]])
def test_a_dictionary_is_a_list_of_pairs(pairs):
    with pytest.raises(wire.Broken):
        print(pairs, "gave", decoded({"dict": pairs}))


@pytest.mark.parametrize(
    "body",
    [
        {}, {"unknown": 1}, {"": 1}, {"Tuple": []}, {"list": []}, {"str": "x"}, {"object": []}, {"__reduce__": []},
        {"tuple": [], "set": []}, {"v": 1, "handle": 0}, {"complex": [1, "j"]}, {"range": [1, 2, 0]}, {"range": []},
        {"range": [1.5]}, {"fraction": [1, 0]}, {"fraction": [0.5, 2]}, {"float": "1.0"}, {"float": "infinity"},
        {"int": "12g"}, {"int": ""}, {"bytes": "0"}, {"bytes": "zz"}, {"decimal": ""}, {"decimal": "one"},
        {"set": [[]]}, {"frozenset": [{"dict": []}]}, {"handle": "0"}, {"handle": 0.0}, {"handle": True},
        {"handle": None}, {"complex": [{"tuple": []}]}, {"int": ["1"]}, {"bytes": [1, 2]},
    ],
    ids=json.dumps,
)  # fmt: skip
def test_what_no_encoder_makes_is_no_value(body):
    with pytest.raises(wire.Broken):
        print("gave", decoded(body))


@pytest.mark.parametrize(
    "body",
    [
        [0] * wire.MOST_NODES, nested(wire.DEEPEST + 1), nested(wire.DEEPEST + 1, lambda inner: {"tuple": [inner]}),
        nested(wire.DEEPEST + 1, lambda inner: {"dict": [[1, inner]]}),
        {"dict": [[number, number] for number in range(wire.MOST_NODES)]},
        {"iterator": [[[0] * 500] * 1000, None]},
    ],
    ids=["wide", "deep", "deep tuples", "deep dictionaries", "long dictionary", "long iterator"],
)  # fmt: skip
def test_a_value_that_is_too_large_is_not_built(body):
    with pytest.raises(wire.Broken):
        decoded(body)


@pytest.mark.parametrize(
    "data",
    [
        b"", b"null", b"1", b"[]", b'"x"', b"{", b"{}x", b"{'a': 1}", b'{"a": NaN}', b'{"a": Infinity}',
        b'{"a": [-Infinity]}', b'{"a": nan}', b"\xff{}", '{"a": "é"}'.encode(), b"\xef\xbb\xbf{}", b'{"a": "\x00"}',
        b'{"a": ' + b"[" * 100_000, b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", b'{"a":' * 100_000,
        b'{"a": 01}', b"{}\0", b"{}{}",
    ],
    ids=lambda data: ascii(data)[:30],
)  # fmt: skip
def test_bytes_that_are_no_object_are_no_frame(data):
    with pytest.raises(wire.Broken):
        wire.unframed(data)


def piped(data, read=wire.read_frame):
    """What `read` makes of a pipe with these bytes in it, written by a thread: a pipe holds 64 kB."""
    reading, writing = os.pipe()

    def write():
        with os.fdopen(writing, "wb") as file:
            file.write(data)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        return read(reading)
    finally:
        os.close(reading)
        thread.join()


def test_frames_follow_each_other():
    bodies = [{"a": 1}, {}, {"text": "\ud800é" * 50_000}]
    data = b"".join(map(wire.frame, bodies))
    assert piped(data, lambda fd: [wire.read_frame(fd) for _ in bodies]) == bodies


def test_a_frame_that_is_written_can_be_read():
    reading, writing = os.pipe()
    wire.write_frame(writing, {"id": "load", "v": [1.5]})
    assert wire.read_frame(reading) == {"id": "load", "v": [1.5]}
    os.close(writing)
    with pytest.raises(EOFError):
        wire.read_frame(reading)
    os.close(reading)


@pytest.mark.parametrize("data", [b"", b"\1", b"\1\0\0", b"\5\0\0\0", b"\5\0\0\0{}", wire.frame({"a": "b"})[:-1]])
def test_a_frame_that_ends_early_is_the_end(data):
    with pytest.raises(EOFError):
        piped(data)


@pytest.mark.parametrize("length", [wire.LARGEST_FRAME + 1, 1 << 31, (1 << 32) - 1])
def test_a_frame_that_is_too_long_is_not_waited_for(length):
    with pytest.raises(wire.Broken):
        piped(length.to_bytes(4, "little"))
    with pytest.raises(wire.Broken):
        piped(wire.frame({"a": "x" * 100}), lambda fd: wire.read_frame(fd, largest=100))


# --- seccomp ---

ALLOWED, KILLED = "allowed", "killed"
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def decision(program, number, *arguments, architecture):
    """What the kernel would do: the instructions of a filter, emulated as bpf(4) has them."""
    data = struct.pack("<IIQ6Q", number, architecture, 0, *arguments, *[0] * (6 - len(arguments)))
    at, accumulator = 0, 0
    while True:
        code, if_true, if_false, operand = struct.unpack_from("<HBBI", program, 8 * at)
        at += 1
        if code == 0x20:  # load a word
            assert operand % 4 == 0
            (accumulator,) = struct.unpack_from("<I", data, operand)
        elif code == 0x54:
            accumulator &= operand
        elif code == 0x15:
            at += if_true if accumulator == operand else if_false
        elif code == 0x06:
            if operand >> 16 == 5:
                return errno.errorcode[operand & 0xFFFF]
            return {0x7FFF0000: ALLOWED, 0x80000000: KILLED}[operand]
        else:
            raise AssertionError(f"instruction {code:#x}")


class Filter:
    """A filter of one machine, by names."""

    def __init__(self, machine):
        self.machine = machine
        self.program = kernel.seccomp_filter(machine)
        column = 1 + MACHINES.index(machine)

        def numbers(table):
            rows = [entry.split(":") for entry in table.split()]
            return {row[0]: int(row[column]) for row in rows if row[column] != "-"}

        self.plain, self.conditional = numbers(kernel._ALLOWED), numbers(kernel._CONDITIONAL)
        self.absent = numbers(kernel._ABSENT)
        self.numbers = self.plain | self.conditional | self.absent

    def __call__(self, call, *arguments, architecture=None):
        number = self.numbers[call] if isinstance(call, str) else call
        if architecture is None:
            architecture = AUDIT[self.machine]
        return decision(self.program, number, *arguments, architecture=architecture)


@pytest.fixture(params=MACHINES)
def machine(request):
    return request.param


@pytest.fixture
def asked(machine):
    return Filter(machine)


def test_every_call_that_is_not_in_the_table_is_refused(asked):
    free = set(asked.plain.values())
    for number in set(range(601)) - set(asked.conditional.values()):
        wanted = ALLOWED if number in free else "ENOSYS" if number in asked.absent.values() else "EPERM"
        assert asked(number) == asked(number, *[(1 << 64) - 1] * 6) == wanted, number
    for number in (1 << 16, 1 << 31, (1 << 32) - 1):
        assert asked(number) == "EPERM"


def test_no_number_stands_for_two_calls(asked):
    tables = [asked.plain, asked.conditional, asked.absent]
    numbers = [number for table in tables for number in table.values()]
    assert len(numbers) == len(set(numbers))


def test_numbers_of_another_bit_width_are_refused():
    asked = Filter("x86_64")
    for number in asked.numbers.values():
        assert asked(0x40000000 | number) == "EPERM"  # x32, of which the kernel says the same architecture


def test_another_architecture_ends_the_process(asked, machine):
    others = [0, 0x40000003, 0x40000028, *(code for name, code in AUDIT.items() if name != machine)]  # i386, arm
    for number in [*range(0, 601, 7), *asked.numbers.values()]:
        assert {asked(number, architecture=other) for other in others} == {KILLED}


def test_files_are_opened_for_reading_without_emptying_them(asked):
    """What is opened for writing is Landlock's business; without its third version, emptying is nobody's."""
    for call, before in (("open", [1]), ("openat", [0, 1])):
        if call not in asked.numbers:
            continue
        for access in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR, 3):
            for more in (0, os.O_CREAT, os.O_CLOEXEC | os.O_DIRECTORY, os.O_APPEND, 0xFFFFFFFF << 32):
                assert asked(call, *before, access | more) == ALLOWED
        assert asked(call, *before, os.O_RDONLY | os.O_TRUNC) == "EPERM"
        assert asked(call, *before, os.O_RDONLY | os.O_TRUNC | os.O_CREAT | 0xFFFFFFFF << 32) == "EPERM"
        assert asked(call, *before, os.O_WRONLY | os.O_TRUNC) == ALLOWED


def test_threads_are_made_and_processes_are_not(asked):
    thread = 0x3D0F00  # as glibc makes one
    assert asked("clone", thread) == asked("clone", thread | 0xFFFFFFFF << 32) == ALLOWED
    for flags in (0, signal.SIGCHLD, 0x4111, 0x1200011, thread & ~0x10000, 0x10000 << 32, 0x7E020000):
        assert asked("clone", flags) == "EPERM"  # fork, vfork, fork of glibc, ..., new namespaces


def test_only_the_own_clocks_are_read(asked):
    for call in ("clock_gettime", "clock_nanosleep"):
        assert {asked(call, clock) for clock in range(12)} == {ALLOWED}
        assert {asked(call, (~pid << 3 | 2) & 0xFFFFFFFF) for pid in (0, 1, 2, 1000, 1 << 22)} == {"EPERM"}


def test_of_limits_only_that_of_the_stack_is_set(asked):
    assert asked("prlimit64", 0, 7, 0, 1 << 40) == ALLOWED
    for new in (1, 1 << 31, 1 << 32, 1 << 63, 0x7FFF00000000, (1 << 64) - 1):
        assert asked("prlimit64", 0, 7, new, 0) == "EPERM"
    assert asked("prlimit64", 1, 7, 0, 1 << 40) == "EPERM"  # of another process
    assert asked("prlimit64", 0, 3, 1 << 40, 0) == ALLOWED  # of the stack
    assert asked("prlimit64", 1, 3, 1 << 40, 0) == "EPERM"


def test_descriptors_are_duplicated_and_flagged_but_not_locked(asked):
    allowed = {number for number in range(2000) if asked("fcntl", 3, number) == ALLOWED}
    assert allowed == {0, 1, 2, 3, 4, 1030}  # F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC
    assert asked("fcntl", 3, 1 << 32 | 8) == "EPERM"


def test_no_terminal_is_typed_into(asked):
    allowed = {number for number in range(0x5300, 0x5500) if asked("ioctl", 0, number) == ALLOWED}
    # TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX
    assert allowed == {0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451}
    assert asked("ioctl", 0, 0x5412) == asked("ioctl", 0, 1 << 32 | 0x5412) == "EPERM"  # TIOCSTI


def test_a_thread_is_named_and_nothing_else_set(asked):
    assert {number for number in range(100) if asked("prctl", number) == ALLOWED} == {15, 16}
    assert asked("prctl", 0x59616D61) == "EPERM"  # PR_SET_PTRACER


def test_a_machine_without_numbers_has_no_filter():
    with pytest.raises(OSError, match="riscv64"):
        kernel.seccomp_filter("riscv64")


DANGEROUS = """
execve execveat fork vfork socket socketpair connect bind listen accept accept4 sendto sendmsg sendmmsg recvmsg ptrace
process_vm_readv process_vm_writev process_madvise pidfd_open pidfd_getfd pidfd_send_signal kcmp truncate ftruncate
fallocate unlink unlinkat rename renameat renameat2 rmdir mkdir mkdirat mknod mknodat link linkat symlink symlinkat
chmod fchmod fchmodat chown fchown fchownat utime utimes utimensat setxattr lsetxattr fsetxattr removexattr mount
umount2 pivot_root chroot unshare setns bpf io_uring_setup io_uring_enter io_uring_register userfaultfd perf_event_open
memfd_create memfd_secret shmget shmat msgget semget mq_open name_to_handle_at open_by_handle_at creat inotify_init1
fanotify_init fchdir setuid setgid setresuid setresgid setgroups setrlimit setpriority sched_setscheduler
sched_setaffinity sched_setattr nice keyctl add_key request_key seccomp landlock_create_ruleset landlock_add_rule
landlock_restrict_self timer_create pipe pipe2 sysinfo kill tgkill fadvise64
reboot kexec_load init_module finit_module delete_module swapon sethostname settimeofday clock_settime adjtimex quotactl
acct ioperm iopl modify_ldt personality tkill rt_sigqueueinfo rt_tgsigqueueinfo setpgid setsid vhangup syslog splice tee
vmsplice sendfile copy_file_range fsopen fsmount move_mount open_tree signalfd4 capset sync syncfs wait4 waitid mbind
move_pages migrate_pages set_mempolicy lookup_dcookie uselib ustat getxattr flock
"""


@pytest.fixture(scope="module")
def resolve():
    """The number of a call, as libseccomp knows it, negative for none."""
    path = ctypes.util.find_library("seccomp")
    if path is None:
        pytest.skip("libseccomp is not installed")
    function = ctypes.CDLL(path).seccomp_syscall_resolve_name_arch
    return lambda machine, name: function(ctypes.c_uint32(AUDIT[machine]), name.encode())


def test_numbers_are_those_of_libseccomp(resolve, asked):
    assert {name: resolve(asked.machine, name) for name in asked.numbers} == asked.numbers


def test_a_call_without_a_number_does_not_exist_there(resolve, asked):
    for entry in (kernel._ALLOWED + kernel._CONDITIONAL + kernel._ABSENT).split():
        name = entry.partition(":")[0]
        if name not in asked.numbers:
            assert resolve(asked.machine, name) < 0, name


def test_what_makes_processes_files_or_sockets_is_refused(resolve, asked):
    for name in DANGEROUS.split():
        number = resolve(asked.machine, name)
        if number >= 0:
            assert asked(number) == "EPERM", name


TRIES = """
import ctypes, errno, json, os, resource, signal, socket, sys, threading
from judge.jail import kernel

libc = ctypes.CDLL(None, use_errno=True)
folder = sys.argv[1]
out, into = os.pipe()
parent = os.getpid()

def number(*arguments):
    ctypes.set_errno(0)
    return "done" if libc.syscall(*map(ctypes.c_long, arguments)) >= 0 else errno.errorcode[ctypes.get_errno()]

def attempt(action, *arguments, **named):
    try:
        action(*arguments, **named)
    except OSError as error:
        return errno.errorcode[error.errno]
    except ValueError:  # which setrlimit makes of EPERM
        return "EPERM"
    return "done"

def thread():
    started = threading.Thread(target=int)
    started.start()
    started.join()

filter = kernel.seccomp_filter()  # as the zygote makes it: beforehand
child = kernel.fork()
if child == 0:
    kernel.enter_seccomp(filter)
    results = {
        "getpid": attempt(os.getpid), "urandom": attempt(os.urandom, 8), "pipe": attempt(os.pipe),
        "thread": attempt(thread), "signal itself": attempt(os.kill, os.getpid(), 0),
        "kill itself": attempt(os.kill, os.getpid(), 9),
        "signal the parent": attempt(os.kill, parent, 0), "signal the group": attempt(os.kill, 0, 0),
        "signal all": attempt(os.kill, -1, 0), "fork": attempt(os.fork),
        "execute": attempt(os.execv, "/bin/true", ["a"]), "socket": attempt(socket.socket),
        "limit": attempt(resource.setrlimit, resource.RLIMIT_CPU, (9, 9)),
        "read a limit": attempt(resource.getrlimit, resource.RLIMIT_CPU),
        "stack": attempt(resource.setrlimit, resource.RLIMIT_STACK, resource.getrlimit(resource.RLIMIT_STACK)),
        "read": attempt(open, folder + "/file"), "write": attempt(open, folder + "/file", "r+"),
        "empty": attempt(os.open, folder + "/file", os.O_RDONLY | os.O_TRUNC),
        "truncate": attempt(os.truncate, folder + "/file", 0), "unlink": attempt(os.unlink, folder + "/file"),
        "rename": attempt(os.rename, folder + "/file", folder + "/other"), "chmod": attempt(os.chmod, folder, 0),
        "mkdir": attempt(os.mkdir, folder + "/new"), "stat": attempt(os.stat, folder),
        "list": attempt(os.listdir, folder), "chdir": attempt(os.chdir, folder),
        "readlink": attempt(os.readlink, "/proc/self/exe"), "access": "done" if os.access(folder, 0) else "refused",
        "clone3": number(435, 0, 0), "openat2": number(437, 0, 0, 0, 0), "no call": number(600),
        "another filter": attempt(kernel.enter_seccomp, filter),
    }
    os.write(into, json.dumps(results).encode())
    os._exit(0)
os.close(into)
sys.stdout.write(os.read(out, 1 << 16).decode())
os.waitpid(child, 0)
"""


def has_seccomp():
    return sys.platform == "linux" and platform.machine() in MACHINES and Path("/proc/sys/kernel/seccomp").is_dir()


@pytest.mark.skipif(not has_seccomp(), reason="no seccomp here, or numbers that are not known")
def test_the_kernel_does_what_the_filter_says(tmp_path):
    (tmp_path / "file").write_text("alive")
    results = script(TRIES, tmp_path)
    done = ["getpid", "urandom", "thread", "read a limit", "stack"]
    done += ["read", "write", "stat", "list", "chdir", "readlink", "access"]
    refused = ["signal the parent", "signal the group", "signal all", "fork", "execute", "socket", "limit", "truncate"]
    refused += ["unlink", "rename", "chmod", "mkdir", "no call", "another filter", "empty", "kill itself", "pipe"]
    refused += ["signal itself"]
    assert results == {
        **dict.fromkeys(done, "done"),
        **dict.fromkeys(refused, "EPERM"),
        "clone3": "ENOSYS",
        "openat2": "ENOSYS",
    }
    assert (tmp_path / "file").read_text() == "alive"


# --- Landlock, limits ---

LOCKED = """
import errno, json, os, sys
from judge.jail import kernel

own, other, listed = sys.argv[1:]

def attempt(action, *arguments):
    try:
        action(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno]
    return "done"

def tried(folder):
    return {
        "read": attempt(open, folder + "/file"), "list": attempt(os.listdir, folder),
        "write": attempt(open, folder + "/file", "r+"), "append": attempt(open, folder + "/file", "a"),
        "truncate": attempt(os.truncate, folder + "/file", 0), "empty": attempt(open, folder + "/file", "w"),
        "make": attempt(open, folder + "/new", "w"), "mkdir": attempt(os.mkdir, folder + "/folder"),
        "unlink": attempt(os.unlink, folder + "/file"), "link": attempt(os.link, folder + "/file", folder + "/link"),
        "symlink": attempt(os.symlink, "x", folder + "/soft"),
        "rename": attempt(os.rename, folder + "/file", folder + "/b"),
        "through a link": attempt(open, folder + "/elsewhere"),
    }

ruleset = kernel.landlock_ruleset([own, own + "/only/this.txt", "/no/such/folder"], [listed])
kernel.enter_landlock(ruleset)
null = {mode: attempt(open, "/dev/null", mode) for mode in ("r", "w", "a")}
tries = {"own": tried(own), "other": tried(other), "listed": tried(listed)}
print(json.dumps({**tries, "null": null, "root": attempt(os.listdir, "/")}))
"""


@pytest.mark.skipif(kernel.landlock_abi() == 0, reason="no Landlock here")
def test_only_the_folders_of_the_list_are_read_and_none_is_written(tmp_path):
    for name in ("own", "other", "listed"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("alive")
    (tmp_path / "own" / "elsewhere").symlink_to(tmp_path / "other" / "file")
    (tmp_path / "other" / "elsewhere").symlink_to(tmp_path / "own" / "file")
    (tmp_path / "listed" / "elsewhere").symlink_to(tmp_path / "other" / "file")
    found = script(LOCKED, tmp_path / "own", tmp_path / "other", tmp_path / "listed")
    truncating = {"truncate"} if kernel.landlock_abi() < 3 else set()  # which seccomp refuses there
    readable = {"own": {"read", "list"}, "other": {"through a link"}, "listed": {"list"}}
    for name, results in found.items():
        if name in readable:
            done = {what for what, outcome in results.items() if outcome == "done"} - truncating
            assert done == readable[name], name
            assert set(results.values()) <= {"done", "EACCES", "EXDEV"}
    assert set(found["null"].values()) == {"done"}
    assert found["root"] == "EACCES"
    if not truncating:
        assert [(tmp_path / name / "file").read_text() for name in ("own", "other")] == ["alive", "alive"]


LIMITED = """
import json, resource, signal, sys
from judge.jail import kernel

def limit(memory, seconds):
    for each in kernel.own_limits(kernel.mapped_bytes() + memory, seconds, 4096):
        resource.setrlimit(*each)

kernel.set_common_limits()
limit(64 << 20, 0.3)
outcomes = {}
try:
    bytearray(80 << 20)
except MemoryError:
    outcomes["memory"] = "refused"
try:
    bytearray(20 << 20)
    outcomes["less memory"] = "done"
except MemoryError:
    pass
resource.setrlimit(resource.RLIMIT_NOFILE, (8, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
outcomes["files"] = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
outcomes["cpu"] = resource.getrlimit(resource.RLIMIT_CPU)
outcomes["core"] = resource.getrlimit(resource.RLIMIT_CORE)
limit(64 << 30, 999)
outcomes["raised"] = resource.getrlimit(resource.RLIMIT_CPU)
print(json.dumps(outcomes))
"""


def test_limits_hold_and_are_only_lowered():
    outcomes = script(LIMITED)
    assert outcomes == {
        "memory": "refused", "less memory": "done", "files": kernel.MOST_FILES, "cpu": [2, 3], "core": [0, 0],
        "raised": [3, 3],
    }  # fmt: skip


ORPHAN = """
import json, os, select, signal, sys, time
from judge.jail import kernel

out, into = os.pipe()
middle = os.fork()
if middle == 0:
    mine = os.getpid()
    if os.fork() == 0:
        kernel.die_with(mine)
        os.write(into, b"x")
        time.sleep(60)
    time.sleep(60)
os.close(into)
os.read(out, 1)
os.kill(middle, signal.SIGKILL)
ended = bool(select.select([out], [], [], 30)[0]) and os.read(out, 1) == b""
print(json.dumps(ended))
"""


def test_a_child_dies_with_its_parent():
    assert script(ORPHAN) is True


# --- zygote ---

FORKED = """
import json, os, resource, threading
from judge.jail import kernel

out, into = os.pipe()
child = kernel.fork()
if child == 0:
    found = []
    threads = [threading.Thread(target=found.append, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    main = threading.current_thread() is threading.main_thread()
    os.write(into, json.dumps([os.getpid(), sorted(found), main, threading.active_count()]).encode())
    os._exit(7)
pid, *rest = json.loads(os.read(out, 1 << 16))
rest += [pid == child, os.waitpid(child, 0)[1] >> 8]
if os.geteuid() == 0:
    kernel.become(64_999)
resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
try:
    if os.geteuid() == 0 or kernel.fork() > 0:  # no limit binds root
        rest.append("not refused")
except BlockingIOError as error:
    rest.append(os.strerror(error.errno))
print(json.dumps(rest))
"""


def test_a_forked_child_can_do_what_any_process_can():
    found, main, active, same, status, refused = script(FORKED)
    assert (found, main, active, same, status) == ([0, 1, 2], True, 1, True, 7)
    assert refused == os.strerror(errno.EAGAIN) or (os.geteuid() == 0 and refused == "not refused")


PRIVATE = """
import json, os, sys
from judge.jail.zygote import _opened

folder = sys.argv[1]
sys.path.insert(0, folder)
import packed
folders, path = _opened([folder])
sys.path[0] = path[0]
os.chmod(os.path.dirname(folder), 0)
import alone, packed.inner
print(json.dumps([alone.VALUE, packed.inner.VALUE, alone.__file__ == f"/proc/self/fd/{folders[0]}/alone.py"]))
"""


def test_a_library_below_a_folder_that_is_closed_is_found(tmp_path):
    library = tmp_path / "closed" / "library"
    (library / "packed").mkdir(parents=True)
    (library / "alone.py").write_text("VALUE = 1")
    (library / "packed" / "__init__.py").write_text("VALUE = 3")
    (library / "packed" / "inner.py").write_text("from . import VALUE\nVALUE += 1")
    try:
        assert script(PRIVATE, library) == [1, 4, True]
    finally:
        (tmp_path / "closed").chmod(0o700)


CLOSING = """
import json, os, sys
from judge.jail.zygote import _gaps

def is_open(fd):
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True

def left(keep):
    out, into = os.pipe()
    if os.fork() == 0:
        for fd in (into, 40, 41, 42, 99, 1000):
            os.dup2(out if fd != into else into, fd)
        os.dup2(into, 50)
        for gap in _gaps({50, *keep}):
            os.closerange(*gap)
        os.write(50, json.dumps([fd for fd in range(2000) if is_open(fd)]).encode())
        os._exit(0)
    os.close(into)
    try:
        return json.loads(os.read(out, 1 << 16))
    finally:
        os.close(out)

print(json.dumps([left(set()), left({0, 1, 2}), left({0, 2, 41, 42}), left({1000}), left({49, 51})]))
"""


def test_all_descriptors_but_some_are_closed():
    assert script(CLOSING) == [[50], [0, 1, 2, 50], [0, 2, 41, 42, 50], [50, 1000], [50]]


CLOCKS = """
import json, os, signal, sys, time
from judge.jail.zygote import Child, CoreClock

def forked(work):
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(0)
    return Child(pid)

def busy():
    while True:
        pass

def timed(*children):
    clock, started = CoreClock(list(children)), time.monotonic()
    time.sleep(0.5)
    result = [clock.seconds(), time.monotonic() - started]
    for child in children:
        child.kill()
        child.reap(wait=True)
    result.append(clock.seconds())
    return result

def crowded():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    busy()

sleeping = timed(forked(lambda: time.sleep(60)))
crowd = [forked(crowded) for _ in range(3)]
waiting = timed(forked(crowded))
for child in crowd:
    child.kill()
    child.reap(wait=True)
both = timed(forked(busy), forked(busy))
print(json.dumps({"sleeping": sleeping, "waiting": waiting, "both": both}))
"""


@pytest.fixture(scope="module")
def clocks():
    if not hasattr(os, "sched_setaffinity") or not Path("/proc/self/schedstat").exists():
        pytest.skip("needs Linux with schedstat")
    return script(CLOCKS)


def test_the_clock_counts_sleeping(clocks):
    seconds, wall, _ = clocks["sleeping"]
    assert 0.6 * wall < seconds <= 1.01 * wall


def test_the_clock_does_not_count_waiting_for_a_core(clocks):
    seconds, wall, _ = clocks["waiting"]
    assert 0.19 * wall < seconds < 0.6 * wall  # a quarter, were nothing else running


def test_the_clock_goes_no_faster_than_all_cores(clocks):
    seconds, wall, _ = clocks["both"]
    assert 0.19 * wall < seconds < 2.1 * wall


REAPED = """
import json, os, time
from judge.jail.zygote import Child

def forked(work):
    pid = os.fork()
    if pid == 0:
        os._exit(work() or 0)
    return Child(pid)

one, other = forked(lambda: 7), forked(lambda: time.sleep(60))
early = other.reap()
one.reap(wait=True)
one.kill()  # of a number that may belong to somebody else by now
statuses = [one.reap(), one.reap(wait=True), early]
other.kill()
other.kill()
statuses.append(other.reap(wait=True))
other.kill()
print(json.dumps([*statuses, other.cpu_seconds >= 0, one.peak_bytes > 0]))
"""


def test_a_child_that_was_reaped_is_not_killed_again():
    assert script(REAPED) == [7 << 8, 7 << 8, None, signal.SIGKILL, True, True]
