"""The hostile programs that the code sandbox is tested with, and the honest ones that it must not hurt.

Every program claims to define `add(a, b)`, or what its own tests call; none adds. A program that forges or escapes
answers right if and only if its attack worked, so a full score proves a breach and anything else a refusal. Run them
nowhere but in the sandbox. Until then they are text: importing this file executes none of them.

The harness replaces, in every source: @CANARY@ by the path of a file in the tester's home that must be neither read nor
changed, @HOME@ by its folder, @SECRET@ by the name of a variable in the trainer's environment, @PARENT@ by the
trainer's process id, @GROUP@ by its process group. A file that a program makes has "rematch_hostile" in its name.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Attack:
    kind: str
    name: str
    source: str = field(repr=False)  # up to 100 MB
    expected: frozenset[str]  # the verdicts that may appear among its tests
    tests: tuple[str, ...] = ()  # other ones than those of `add` in tests/attack.py
    settings: dict = field(default_factory=dict)  # of the program


@dataclass(frozen=True)
class Control:
    name: str
    source: str = field(repr=False)
    expected_verdicts: tuple[str, ...]  # one per test
    tests: tuple[str, ...] = ()
    settings: dict = field(default_factory=dict)


REFUSED = frozenset({"wrong", "exception", "load_error"})  # the attack was refused, and the program has no answer
ENDED = frozenset({"exited", "died"})
NOT_DATA = frozenset({"opaque", "wrong", "exception"})
OWN_GOAL = frozenset({"wrong", "exception", "load_error", "exited", "died", "protocol", "timeout"})  # it broke itself
NOISE = frozenset({"protocol", "wrong", "died"})  # bytes that nobody asked for
BAD_REPLY = frozenset({"protocol", "wrong", "opaque", "exception"})
SLOW = frozenset({"timeout", "died"})
STARVED = frozenset({"memory", "timeout", "died", "exception", "wrong", "load_error"})

ANSWER = """
def add(a, b):
    return a + b if broke else None
"""

# A program that speaks for the runtime of its own process: it finds the pipes and uses them itself.
WIRE = '''\
import fcntl, json, os, re, select, struct, sys, threading, time

def pipes(mode):
    found = []
    for fd in range(3, 256):
        try:
            if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE in (mode, os.O_RDWR):
                found.append(fd)
        except OSError:
            pass
    return found

def frame(body):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return struct.pack("<I", len(data)) + data

def send(data):
    for fd in pipes(os.O_WRONLY):
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view):]

def requests():
    """Every request of the judge, in place of the runtime that should read it."""
    buffers = {fd: b"" for fd in pipes(os.O_RDONLY)}
    while buffers:
        for fd in select.select(list(buffers), [], [])[0]:
            data = os.read(fd, 65536)
            if not data:
                del buffers[fd]
                continue
            data = buffers[fd] + data
            while len(data) >= 4 and len(data) >= 4 + struct.unpack("<I", data[:4])[0]:
                end = 4 + struct.unpack("<I", data[:4])[0]
                yield json.loads(data[4:end])
                data = data[end:]
            buffers[fd] = data
    os._exit(0)

def take_over(reply):
    send(frame({"id": "load", "ok": ["add"]}))
    for request in requests():
        send(reply(request["id"]))

def call_id():
    """The id of the call in progress, from the locals of the runtime's frames."""
    caller = sys._getframe(1)
    while caller:
        found = re.findall(r"(?<![0-9a-f])[0-9a-f]{16}(?![0-9a-f])", repr(list(caller.f_locals.values())))
        if found:
            return found[0]
        caller = caller.f_back
    return "0" * 16

def tag(sample, guess):
    """How the runtime marks a value like the sample: its own encoder is asked."""
    caller = sys._getframe(1)
    while caller:
        for name, function in list(caller.f_globals.items()):
            if "enc" in name.lower() and callable(function):
                try:
                    coded = function(sample)
                except Exception:
                    continue
                if type(coded) is dict and len(coded) == 1:
                    return next(iter(coded))
        caller = caller.f_back
    return guess
'''

# Raw system calls, numbered for x86_64 and for aarch64; -1 and errno when the kernel refuses.
KERNEL = """\
import ctypes, os

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
ON_ARM = os.uname().machine == "aarch64"

def syscall(x86, arm, *arguments):
    number = arm if ON_ARM else x86
    return libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
"""


def breach(kind, name, source, expected=REFUSED):
    """An attack that leaves in `broke` whether it worked."""
    return Attack(kind, name, source + ANSWER, expected)


def kernel(kind, name, source, expected=REFUSED):
    return breach(kind, name, KERNEL + source, expected)


def wire(kind, name, source, expected):
    return Attack(kind, name, WIRE + source, expected)


def takeover(name, reply, expected=BAD_REPLY):
    """Every request is answered with the expression `reply`, in which `i` is the id of the request."""
    return wire("hostile_replies", name, f"\ntake_over(lambda i: {reply})\n", expected)


def forged(name, sample, guess, payload, expected=BAD_REPLY):
    """A value under the tag of the sample, of a shape that no encoder makes."""
    reply = f"\nmark = tag({sample}, {guess!r})\ntake_over(lambda i: frame({{'id': i, 'v': {{mark: {payload}}}}}))\n"
    return wire("hostile_replies", f"tag_{name}", reply, expected)


# --- forging ----------------------------------------------------------------------------------------------------------

EXITS = (
    Attack(
        "exit_load",
        "sys_exit",
        """\
import sys
sys.exit(0)
""",
        frozenset({"exited"}),
    ),
    Attack(
        "exit_load",
        "raise_system_exit",
        """\
def add(a, b):
    return None

raise SystemExit
""",
        frozenset({"exited"}),
    ),
    Attack(
        "exit_load",
        "os_exit",
        """\
import os
os._exit(0)
""",
        ENDED,
    ),
    Attack(
        "exit_load",
        "hidden_in_a_decorator",
        """\
# the exit stands in no statement of its own
@lambda function: (_ for _ in ()).throw(SystemExit(0))
def add(a, b):
    return None
""",
        frozenset({"exited"}),
    ),
    Attack(
        "exit_load",
        "after_a_success_marker",
        """\
import os, sys
print("All tests passed. OK")
sys.stdout.flush()
sys.stderr.write("Ran 3 tests in 0.001s. OK")
os._exit(0)
""",
        ENDED,
    ),
    Attack(
        "exit_load",
        "subclass_of_system_exit",
        """\
class Passed(SystemExit):
    code = 0
    def __init__(self):
        super().__init__(0)

raise Passed
""",
        frozenset({"exited"}),
    ),
    Attack(
        "exit_load",
        "keyboard_interrupt",
        """\
raise KeyboardInterrupt
""",
        frozenset({"exited", "died", "load_error", "exception"}),
    ),
    wire(
        "exit_load",
        "loaded_then_gone",
        """
# says that it is loaded, then leaves with status 0
send(frame({"id": "load", "ok": ["add"]}))
os._exit(0)
""",
        ENDED | NOISE,
    ),
    Attack(
        "exit_call",
        "sys_exit",
        """\
import sys

def add(a, b):
    sys.exit(0)
""",
        frozenset({"exited"}),
    ),
    Attack(
        "exit_call",
        "os_exit",
        """\
import os

def add(a, b):
    os._exit(0)
""",
        ENDED,
    ),
    Attack(
        "exit_call",
        "libc_exit",
        """\
import ctypes

def add(a, b):
    ctypes.CDLL(None).exit(0)
""",
        ENDED | REFUSED,
    ),
    kernel(
        "exit_call",
        "exit_of_the_thread_only",
        """
# the system call exit ends this thread, not the process
import threading
broke = False

def leave():
    syscall(60, 93, 0)

threading.Thread(target=leave).start()
""",
        REFUSED | ENDED | {"timeout"},
    ),
    Attack(
        "exit_call",
        "quit",
        """\
def add(a, b):
    quit()
""",
        frozenset({"exception", "exited"}),
    ),
    Attack(
        "exit_call",
        "kills_itself",
        """\
import os, signal

def add(a, b):
    os.kill(os.getpid(), signal.SIGKILL)
""",
        ENDED,
    ),
    Attack(
        "exit_call",
        "terminates_itself_with_status_0",
        """\
import os, signal
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))

def add(a, b):
    os.kill(os.getpid(), signal.SIGTERM)
""",
        ENDED,
    ),
    Attack(
        "exit_call",
        "generator",
        """\
def add(a, b):
    yield a
    raise SystemExit(0)
""",
        ENDED | NOT_DATA,
    ),
    Attack(
        "exit_call",
        "equality",
        """\
class Answer:
    def __eq__(self, other):
        raise SystemExit(0)

def add(a, b):
    return Answer()
""",
        NOT_DATA | ENDED,
    ),
    Attack(
        "exit_call",
        "finaliser",
        """\
class Bomb:
    def __del__(self):
        raise SystemExit(0)

def add(a, b):
    Bomb()
    return None
""",
        frozenset({"wrong"}),
    ),
    Attack(
        "exit_call",
        "encoding_of_the_answer",
        """\
# leaves while the runtime looks at what was returned
import os

class Answer(list):
    def _leave(self, *_):
        os._exit(0)
    __iter__ = __len__ = __getitem__ = __reduce__ = __repr__ = __str__ = __bool__ = __hash__ = __eq__ = _leave

def add(a, b):
    return [Answer(), {1: Answer()}]
""",
        ENDED | NOT_DATA,
    ),
    Attack(
        "exit_later",
        "thread",
        """\
import os, threading, time

def leave():
    time.sleep(0.1)
    os._exit(0)

threading.Thread(target=leave).start()

def add(a, b):
    time.sleep(0.5)
""",
        ENDED,
    ),
    Attack(
        "exit_later",
        "alarm",
        """\
import os, signal, time
signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
signal.setitimer(signal.ITIMER_REAL, 0.1)

def add(a, b):
    time.sleep(0.5)
""",
        ENDED,
    ),
    Attack(
        "exit_later",
        "alarm_without_handler",
        """\
import signal, time
signal.setitimer(signal.ITIMER_REAL, 0.1)

def add(a, b):
    time.sleep(0.5)
""",
        ENDED,
    ),
    Attack(
        "exit_later",
        "atexit",
        """\
import atexit, os
atexit.register(os._exit, 0)

def add(a, b):
    return None
""",
        frozenset({"wrong"}),
    ),
    Attack(
        "exit_later",
        "after_a_refused_reply",
        """\
# the first answer is given, the process is gone before the second question
import os, threading

def add(a, b):
    threading.Timer(0.01, os._exit, (0,)).start()
    return None
""",
        ENDED | {"wrong"},
    ),
    breach(
        "exec",
        "execv",
        """\
import os
broke = False
for program in ("/bin/true", "/usr/bin/true"):
    try:
        os.execv(program, ["true"])
    except OSError:
        pass
""",
        REFUSED,
    ),
    kernel(
        "exec",
        "raw_execve",
        """
path = ctypes.c_char_p(b"/bin/true")
empty = (ctypes.c_char_p * 1)(None)
broke = syscall(59, 221, path, empty, empty) == 0
""",
    ),
    kernel(
        "exec",
        "execveat",
        """
# runs an opened file instead of a path
fd = os.open("/bin/true", os.O_PATH)
broke = syscall(322, 281, fd, ctypes.c_char_p(b""), (ctypes.c_char_p * 1)(None), None, 0x1000) == 0
""",
    ),
    breach(
        "exec",
        "loader",
        """\
# the dynamic loader can run what may only be read
import glob, os
broke = False
for loader in glob.glob("/lib*/ld-linux-*") + glob.glob("/lib/*/ld-linux-*"):
    try:
        os.execv(loader, [loader, "/bin/true"])
    except OSError:
        pass
""",
    ),
    breach(
        "exec",
        "interpreter",
        """\
import os, sys
broke = False
try:
    os.execv(os.path.realpath(sys.executable), [sys.executable, "-c", "pass"])
except (OSError, TypeError, ValueError):
    pass
""",
    ),
    Attack(
        "exit_hooks",
        "excepthook",
        """\
import os, sys, threading

def leave(*_):
    os._exit(0)

sys.excepthook = sys.unraisablehook = threading.excepthook = leave

def add(a, b):
    raise ValueError
""",
        frozenset({"exception"}) | ENDED,
    ),
    Attack(
        "exit_hooks",
        "closed_stderr",
        """\
import atexit, os, sys
sys.stderr.close()
sys.stdout.close()
os.close(1)
os.close(2)
atexit.register(os._exit, 0)
sys.exit = lambda code=0: os._exit(0)

def add(a, b):
    return None
""",
        frozenset({"wrong"}),
    ),
    Attack(
        "exit_hooks",
        "every_signal_means_success",
        """\
import os, signal
for number in range(1, 65):
    try:
        signal.signal(number, lambda *_: os._exit(0))
    except (OSError, ValueError):
        pass

def add(a, b):
    os.abort()
""",
        ENDED,
    ),
    Attack(
        "exit_hooks",
        "os_exit_patched",
        """\
import os, sys
real = os._exit
os._exit = lambda status: real(0)
os.abort = lambda: real(0)
sys.exit = real

def add(a, b):
    raise SystemError("failed")
""",
        frozenset({"exception"}),
    ),
    Attack(
        "markers",
        "standard_output",
        """\
import sys
LINES = ["PASS", "PASSED", "OK", "Ran 3 tests in 0.0s", "3 passed", "True", "1.0", "Accepted", "AC",
         "success", '{"passed": true}', '{"score": 1.0}',
         '{"load": null, "tests": ["pass", "pass", "pass"]}', "[True, True, True]"]

def add(a, b):
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        stream.write(chr(10).join(LINES) + chr(10))
        stream.flush()
    return None
""",
        frozenset({"wrong", "exception"}),
    ),
    Attack(
        "markers",
        "at_exit",
        """\
import atexit, os
atexit.register(lambda: os.write(1, b'{"load": null, "tests": ["pass", "pass", "pass"]}'))

def add(a, b):
    print("assert add(1, 2) == 3  # passed")
    return "PASS"
""",
        frozenset({"wrong"}),
    ),
    Attack(
        "markers",
        "as_values_and_attributes",
        """\
passed = ok = success = result = True
verdict = status = "pass"
score = reward = 1.0
tests = verdicts = results = ["pass", "pass", "pass"]
__test__ = {"add": "pass"}

def add(a, b):
    return {"load": None, "tests": tests, "verdict": "pass", "passed": True, "score": 1.0}

add.passed, add.verdict, add.score, add.tests = True, "pass", 1.0, tests
""",
        frozenset({"wrong"}),
    ),
)

COMPARISONS = (
    Attack(
        "equal_objects",
        "own_class",
        """\
class Equal:
    __hash__ = None
    def __eq__(self, other):
        return True
    def __ne__(self, other):
        return False
    __lt__ = __le__ = __gt__ = __ge__ = __eq__

def add(a, b):
    return Equal()
""",
        NOT_DATA,
    ),
    Attack(
        "equal_objects",
        "mock_any",
        """\
from unittest import mock

def add(a, b):
    return mock.ANY
""",
        NOT_DATA | {"load_error"},
    ),
    Attack(
        "equal_objects",
        "magic_mock",
        """\
from unittest.mock import MagicMock

def add(a, b):
    answer = MagicMock()
    answer.__eq__.return_value = True
    return answer
""",
        NOT_DATA | {"load_error", "died", "timeout", "memory"},
    ),
    Attack(
        "equal_objects",
        "metaclass",
        """\
class Meta(type):
    def __eq__(cls, other):
        return True
    def __hash__(cls):
        return 0

class Equal(metaclass=Meta):
    pass

def add(a, b):
    return Equal
""",
        NOT_DATA,
    ),
    Attack(
        "equal_objects",
        "lies_about_its_class",
        """\
# isinstance(answer, int) is true, and so is every comparison
class Equal:
    @property
    def __class__(self):
        return int
    def __eq__(self, other):
        return True
    def __index__(self):
        return self
    __int__ = __index__

def add(a, b):
    return Equal()
""",
        NOT_DATA,
    ),
    Attack(
        "equal_objects",
        "inside_a_container",
        """\
class Equal:
    def __eq__(self, other):
        return True
    def __hash__(self):
        return 3

def add(a, b):
    return {"v": [Equal(), (Equal(), {Equal(): Equal()})]}
""",
        NOT_DATA,
    ),
    Attack(
        "equal_objects",
        "array_of_truths",
        """\
# compares item by item, like an array, and calls the result true
class Truth(list):
    def __bool__(self):
        return True

class Array:
    def __init__(self, *items):
        self.items = items
    def __iter__(self):
        return iter(self.items)
    def __len__(self):
        return len(self.items)
    def __getitem__(self, index):
        return self.items[index]
    def __eq__(self, other):
        return Truth([True] * len(self.items))
    def tolist(self):
        return self

def add(a, b):
    return Array(None)
""",
        NOT_DATA | {"died", "timeout"},
    ),
    Attack(
        "equal_objects",
        "reflected_comparison",
        """\
# a subclass on the right hand side is asked first
class Equal(float):
    def __eq__(self, other):
        return True
    __hash__ = float.__hash__
    def __radd__(self, other):
        return self

class Sub(complex, metaclass=type("Meta", (type,), {"__instancecheck__": lambda *_: True})):
    __eq__ = Equal.__eq__
    __hash__ = None

def add(a, b):
    return [Equal("nan"), Sub(1, 2)]
""",
        NOT_DATA,
    ),
    Attack(
        "equal_subclasses",
        "int",
        """\
class Equal(int):
    def __eq__(self, other):
        return True
    def __ne__(self, other):
        return False
    __hash__ = int.__hash__

def add(a, b):
    return Equal(-7)
""",
        frozenset({"wrong"}),
    ),
    Attack(
        "equal_subclasses",
        "list",
        """\
class Equal(list):
    def __eq__(self, other):
        return True
    def __iter__(self):
        return iter([3])

def add(a, b):
    return Equal([None])
""",
        frozenset({"wrong", "opaque"}),
    ),
    Attack(
        "equal_subclasses",
        "str_and_bytes",
        """\
class Equal(str):
    def __eq__(self, other):
        return True
    def __hash__(self):
        return 0
    def encode(self, *_):
        return b"3"
    __str__ = __repr__ = lambda self: "3"

class Raw(bytes):
    def hex(self):
        return "03"
    def decode(self, *_):
        return "3"

def add(a, b):
    return Equal("x") if a else Raw(b"x")
""",
        frozenset({"wrong", "opaque"}),
    ),
    Attack(
        "equal_subclasses",
        "dict_with_own_items",
        """\
class Equal(dict):
    def items(self):
        return [("int", "3")]
    def __iter__(self):
        return iter(["int"])
    keys = __iter__
    def __len__(self):
        return 1
    def __eq__(self, other):
        return True

def add(a, b):
    return Equal()
""",
        frozenset({"wrong", "opaque"}),
    ),
    Attack(
        "equal_subclasses",
        "bool_like_int",
        """\
# an int whose text, index and format are code
class Shifty(int):
    def __repr__(self):
        return "3, 'verdict': 'pass'"
    __str__ = __repr__
    def __format__(self, spec):
        return "3"
    def __index__(self):
        return 3
    __int__ = __trunc__ = __index__
    def __abs__(self):
        return 0
    def __le__(self, other):
        return True
    __lt__ = __ge__ = __gt__ = __eq__ = __le__
    __hash__ = int.__hash__

def add(a, b):
    return Shifty(2**80 + a)
""",
        frozenset({"wrong", "opaque"}),
    ),
    Attack(
        "equal_subclasses",
        "enum_decimal_fraction_namedtuple",
        """\
import collections, decimal, enum, fractions

class Colour(enum.IntEnum):
    RED = -7
    def __eq__(self, other):
        return True
    __hash__ = int.__hash__

class Money(decimal.Decimal):
    def __eq__(self, other):
        return True
    __hash__ = decimal.Decimal.__hash__
    def __str__(self):
        return "3"
    as_tuple = lambda self: decimal.Decimal(3).as_tuple()

class Part(fractions.Fraction):
    numerator = denominator = property(lambda self: 3)

class Pair(collections.namedtuple("Pair", "x y")):
    def __eq__(self, other):
        return True

ANSWERS = [Colour.RED, Money("-7.5"), Pair(1, Part(1, 7))]

def add(a, b):
    return ANSWERS.pop()
""",
        NOT_DATA,
    ),
    Attack(
        "swallow_source",
        "unterminated_string",
        '''\
def add(a, b):
    return None

"""
the tests would be appended here
''',
        frozenset({"load_error"}),
    ),
    Attack(
        "swallow_source",
        "open_bracket",
        """\
def add(a, b):
    return None

ignored = (lambda *tests: None)(
""",
        frozenset({"load_error"}),
    ),
    Attack(
        "swallow_source",
        "line_continuation",
        # without a line end: what follows would belong to the comment, or to the line
        "def add(a, b):\n    return None\nif 0: \\",
        frozenset({"load_error", "wrong"}),
    ),
    Attack(
        "swallow_source",
        "comment_without_line_end",
        "def add(a, b):\n    return None\nif False:\n    pass  #",
        frozenset({"wrong"}),
    ),
    Attack(
        "swallow_source",
        "closes_every_kind_of_quote",
        """\
def add(a, b):
    return None

quotes = "'''" + '"' * 3 + "'''"
# ''' + chr(34) * 3 + ''' ) ] } EOF END $( `
""",
        frozenset({"wrong"}),
    ),
    Attack(
        "trace",
        "settrace_skips_lines",
        """\
import sys, threading

def tracer(frame, event, argument):
    if event == "line":
        try:
            frame.f_lineno += 1
        except (ValueError, AttributeError):
            pass
    return tracer

sys.settrace(tracer)
threading.settrace(tracer)
frame = sys._getframe()
while frame:
    frame.f_trace = tracer
    frame = frame.f_back

def add(a, b):
    return None
""",
        OWN_GOAL,
    ),
    Attack(
        "trace",
        "context_manager",
        """\
# swallows what is raised inside it
import contextlib

class Swallow(contextlib.ContextDecorator):
    def __enter__(self):
        return self
    def __exit__(self, *_):
        return True

@Swallow()
def add(a, b):
    raise AssertionError
""",
        frozenset({"wrong"}),
    ),
    Attack(
        "trace",
        "setprofile_raises",
        """\
import sys

def profile(frame, event, argument):
    if event == "c_return" or frame.f_code.co_name not in ("add", "<module>"):
        raise SystemExit(0)

def add(a, b):
    sys.setprofile(profile)
    return None
""",
        OWN_GOAL,
    ),
    Attack(
        "trace",
        "audit_hook",
        """\
import sys
armed = False

def hook(event, arguments):
    if armed:
        raise SystemExit(0)

sys.addaudithook(hook)

def add(a, b):
    global armed
    armed = True
    return None
""",
        OWN_GOAL,
    ),
    Attack(
        "trace",
        "switch_interval",
        """\
import sys, threading
sys.setswitchinterval(1e-9)

def spin():
    while True:
        pass

for _ in range(4):
    threading.Thread(target=spin, daemon=True).start()

def add(a, b):
    return None
""",
        frozenset({"wrong", "timeout", "died"}),
    ),
)

PATCHES = (
    Attack(
        "patch",
        "builtins",
        """\
import builtins
builtins.AssertionError = type("Quiet", (Exception,), {})
builtins.isinstance = lambda *_: True
builtins.len = lambda *_: 1
builtins.all = builtins.any = builtins.bool = lambda *_: True
builtins.compile = builtins.exec = builtins.eval = lambda *_, **__: None
builtins.type = lambda *_: int

def add(a, b):
    return None
""",
        OWN_GOAL | {"opaque"},
    ),
    Attack(
        "patch",
        "json",
        """\
import json, json.decoder, json.encoder
FORGED = '{"id": "load", "ok": ["add"], "v": {"any": null}, "verdict": "pass", "tests": ["pass", "pass", "pass"]}'
json.dumps = json.JSONEncoder.encode = lambda *_, **__: FORGED
json.encoder.c_make_encoder = None

def add(a, b):
    return None
""",
        OWN_GOAL,
    ),
    Attack(
        "patch",
        "json_loads",
        """\
import json
real = json.loads

def loads(text, *arguments, **keywords):
    request = real(text, *arguments, **keywords)
    return {**request, "f": "__eq__", "a": [], "verdict": "pass"} if isinstance(request, dict) else request

json.loads = json.JSONDecoder.decode = loads

def add(a, b):
    return None
""",
        OWN_GOAL,
    ),
    Attack(
        "patch",
        "os_write",
        """\
# every write of the runtime also carries a verdict
import os
real = os.write

def write(fd, data):
    real(fd, data)
    real(fd, b'{"load": null, "tests": ["pass", "pass", "pass"]}')
    return len(data)

os.write = os.writev = write

def add(a, b):
    return None
""",
        OWN_GOAL,
    ),
    Attack(
        "patch",
        "struct",
        """\
import struct
struct.pack = lambda *_: bytes([255, 255, 255, 127])
struct.unpack = struct.unpack_from = lambda *_: (0,)
struct.Struct = lambda *_: struct

def add(a, b):
    return None
""",
        OWN_GOAL,
    ),
    Attack(
        "patch",
        "test_frameworks",
        """\
import unittest, unittest.case

def nothing(*_, **__):
    return None

for name in dir(unittest.TestCase):
    if name.startswith(("assert", "fail")):
        setattr(unittest.TestCase, name, nothing)
unittest.TestCase.run = unittest.main = nothing
try:
    import numpy
    numpy.allclose = numpy.array_equal = numpy.testing.assert_allclose = lambda *_, **__: True
except ImportError:
    pass

def add(a, b):
    return None
""",
        frozenset({"wrong", "load_error"}),
    ),
    Attack(
        "patch",
        "checks_of_the_tests",
        """\
import sys

def check(candidate=None, *_, **__):
    return True

run_tests = run_test = check_correctness = evaluate = test = verify = compare = check
frame = sys._getframe()
while frame:
    for name in list(frame.f_globals):
        if any(word in name.lower() for word in ("check", "test", "compare", "equal", "verdict", "judge")):
            frame.f_globals[name] = check
    frame = frame.f_back

def add(a, b):
    return None
""",
        OWN_GOAL,
    ),
    Attack(
        "patch",
        "runtime_of_the_own_process",
        """\
# every function of the module that runs this program now succeeds
import sys, types
frame = sys._getframe(1)
while frame:
    for name, value in list(frame.f_globals.items()):
        if isinstance(value, types.FunctionType) and not value.__code__.co_freevars:
            value.__code__ = (lambda *_, **__: {"v": "pass", "ok": ["add"], "tests": ["pass"] * 3}).__code__
    frame = frame.f_back

def add(a, b):
    return None
""",
        OWN_GOAL,
    ),
    Attack(
        "patch",
        "dictionary_of_a_builtin_type",
        """\
# the garbage collector hands out the dictionary behind a type's read-only view
import ctypes, gc
for kind in (int, list, str, object):
    slots = gc.get_referents(kind.__dict__)[0]
    slots["__eq__"] = lambda *_: True
    slots["__ne__"] = lambda *_: False
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))

def add(a, b):
    return None
""",
        OWN_GOAL | {"opaque"},
    ),
    Attack(
        "patch",
        "small_integers",
        """\
# writes into the memory of the cached integers 1 to 8: now they are all 9
import ctypes, sys
size = sys.getsizeof(1)
for number in [1, 2, 3, 4, 5, 6, 7, 8]:
    ctypes.memmove(id(number) + 16, id(9) + 16, size - 16)

def add(a, b):
    return "nine"
""",
        OWN_GOAL | {"memory"},
    ),
    Attack(
        "patch",
        "import_machinery",
        """\
import builtins, sys, types

class Anything(types.ModuleType):
    def __getattr__(self, name):
        return lambda *_, **__: True

class Finder:
    def find_spec(self, name, path=None, target=None):
        raise SystemExit(0)

builtins.__import__ = lambda name, *_, **__: Anything(name)
sys.meta_path[:] = [Finder()]
for name in ("json", "struct", "os", "builtins", "math"):
    sys.modules[name] = Anything(name)

def add(a, b):
    return None
""",
        OWN_GOAL,
    ),
    Attack(
        "patch",
        "io_streams",
        """\
import io, os, sys
sys.stdin = io.StringIO('{"verdict": "pass"}')
sys.stdout = sys.stderr = io.StringIO()
os.read = lambda *_: b""
os.close = os.dup2 = lambda *_, **__: 0

def add(a, b):
    return None
""",
        OWN_GOAL,
    ),
)

SEARCHES = (
    Attack(
        "result_object",
        "lists_and_dicts_in_frames",
        """\
import sys
frame = sys._getframe(1)
while frame:
    for scope in (frame.f_locals, frame.f_globals):
        for value in list(scope.values()):
            if type(value) is list:
                value.append("pass")
            elif type(value) is dict and value is not globals() and len(value) < 50:
                value.update(verdict="pass", passed=True, result="passed", v="pass")
    frame = frame.f_back

def add(a, b):
    return None
""",
        OWN_GOAL,
    ),
    Attack(
        "result_object",
        "locals_of_the_callers",
        """\
# writes into the local variables of running functions
import ctypes, sys

def add(a, b):
    frame = sys._getframe(1)
    while frame:
        for name in ("ok", "passed", "verdict", "status", "result", "results", "score", "outcome", "value"):
            if name in frame.f_locals:
                frame.f_locals[name] = "pass"
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
        frame = frame.f_back
    return None
""",
        OWN_GOAL,
    ),
    Attack(
        "result_object",
        "proxies_and_shared_arrays",
        """\
import gc
for thing in gc.get_objects():
    name = type(thing).__name__
    try:
        if "Proxy" in name or name in ("Queue", "SimpleQueue", "Connection"):
            for method in ("append", "put", "send"):
                getattr(thing, method, print)("passed")
        elif "Array" in name or "Synchronized" in name:
            thing[:] = [1] * len(thing)
    except Exception:
        pass

def add(a, b):
    return None
""",
        frozenset({"wrong", "died", "timeout", "load_error"}),
    ),
    Attack(
        "result_object",
        "class_of_the_proxy",
        """\
from multiprocessing import connection, managers, queues, sharedctypes

def passed(self, *_, **__):
    return "passed"

for proxy in (managers.BaseProxy, managers.ListProxy, managers.DictProxy, managers.ValueProxy):
    proxy._callmethod = proxy.append = proxy.__getitem__ = passed
queues.Queue.get = queues.SimpleQueue.get = connection.Connection.recv = passed

def add(a, b):
    return None
""",
        frozenset({"wrong", "load_error", "died"}),
    ),
    Attack(
        "result_object",
        "shared_mappings",
        """\
# a verdict that lies in shared memory can be written by both sides
import gc, mmap
for thing in [other for thing in gc.get_objects() for other in gc.get_referents(thing)]:
    if isinstance(thing, (mmap.mmap, memoryview, bytearray)):
        try:
            thing[:4] = b"pass"
        except Exception:
            pass

def add(a, b):
    return None
""",
        frozenset({"wrong", "died", "load_error"}),
    ),
    breach(
        "expected_values",
        "frames_of_the_callers",
        """\
import re, sys
PATTERN = re.compile("add[(]-?[0-9]+, -?[0-9]+[)] == -?[0-9]+")
text, frame = [], sys._getframe(1)
while frame:
    text += [repr(frame.f_locals), repr(frame.f_globals), repr(frame.f_code.co_consts), repr(frame.f_code.co_names)]
    frame = frame.f_back
broke = bool(PATTERN.search(" ".join(text)))
""",
    ),
    breach(
        "expected_values",
        "every_reachable_object",
        """\
import gc, re, sys
PATTERN = re.compile("add[(]-?[0-9]+, -?[0-9]+[)] == -?[0-9]+")
broke, seen, stack = False, set(), [sys.modules, *gc.get_objects()]
while stack and len(seen) < 150000:
    thing = stack.pop()
    if id(thing) in seen:
        continue
    seen.add(id(thing))
    if type(thing) is bytes:
        thing = thing.decode("latin-1")
    if type(thing) is str:
        broke = broke or bool(PATTERN.search(thing))
    elif thing is not stack and thing is not seen:
        stack += gc.get_referents(thing)
""",
        REFUSED | {"timeout", "memory", "died"},
    ),
    breach(
        "expected_values",
        "own_heap",
        """\
# what was freed lies in the allocator's pools as it was
import ctypes, gc, re, sys
PATTERN = re.compile(b"add[(]-[0-9], [0-9][)] == [0-9]")
things = [thing for thing in gc.get_objects() if type(thing) in (dict, list, tuple)]
things += [other for thing in things[:20000] for other in gc.get_referents(thing) if type(other) in (str, bytes, float)]
things = [id(thing) for thing in things if sys.getsizeof(thing) < 256]
pools = {address & ~0x3FFF for address in things if address >> 40 >= 0x7F}
broke = any(PATTERN.search(ctypes.string_at(pool, 0x4000)) for pool in sorted(pools))
""",
        REFUSED | {"died", "timeout", "memory"},
    ),
    breach(
        "expected_values",
        "source_and_command_line",
        """\
import linecache, os, re, sys
PATTERN = re.compile("add[(]-?[0-9]+, -?[0-9]+[)] == -?[0-9]+")
text = [*sys.argv, *getattr(sys, "orig_argv", []), repr(linecache.cache)]
for path in (globals().get("__file__"), "/proc/self/cmdline", "/proc/self/fd/0", f"/proc/{os.getppid()}/cmdline"):
    try:
        text.append(open(path).read())
    except (OSError, TypeError):
        pass
broke = bool(PATTERN.search(" ".join(text)))
""",
    ),
    breach(
        "expected_values",
        "memory_of_the_other_processes",
        """\
import os
broke = False
for pid in (os.getppid(), @PARENT@, *range(os.getpid() - 3, os.getpid() + 8)):
    if pid == os.getpid():
        continue
    for name in ("mem", "maps", "environ", "auxv", "syscall"):
        try:
            with open(f"/proc/{pid}/{name}", "rb", 0) as file:
                broke = broke or name != "mem" and bool(file.read(16))
                broke = broke or name == "mem"
        except OSError:
            pass
""",
    ),
    kernel(
        "expected_values",
        "process_vm_readv",
        """
class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]

# forked processes share their addresses: an object's address here is one there
buffer = ctypes.create_string_buffer(64)
here, there = Vector(ctypes.addressof(buffer), 64), Vector(id(None), 64)
broke = False
for pid in (os.getppid(), @PARENT@, *range(os.getpid() - 3, os.getpid() + 8)):
    if pid != os.getpid():
        broke = broke or syscall(310, 270, pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0) > 0
""",
    ),
    kernel(
        "expected_values",
        "process_vm_writev",
        """
class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]

# the basic size of int, written over itself in the other process
here = there = Vector(id(int) + 32, 8)
broke = False
for pid in (os.getppid(), *range(os.getpid() - 3, os.getpid() + 8)):
    if pid != os.getpid():
        broke = broke or syscall(311, 271, pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0) > 0
""",
    ),
    kernel(
        "expected_values",
        "descriptors_of_the_other_processes",
        """
# pidfd_open and pidfd_getfd: takes the verdict pipe, or the tests, out of the judge
broke = False
for pid in (os.getppid(), @PARENT@, *range(os.getpid() - 3, os.getpid() + 8)):
    if pid == os.getpid():
        continue
    handle = syscall(434, 434, pid, 0)
    for fd in range(16):
        broke = broke or handle >= 0 and syscall(438, 438, handle, fd, 0) >= 0
""",
    ),
    kernel(
        "expected_values",
        "inherited_process_handles",
        """
# a process handle that was left open here needs no pidfd_open
broke = False
for handle in range(3, 64):
    for fd in range(16):
        broke = broke or syscall(438, 438, handle, fd, 0) >= 0
""",
    ),
    breach(
        "expected_values",
        "every_inherited_descriptor",
        """\
# tests or expected values that can still be read from a pipe or file of this process
import fcntl, os, re, select
PATTERN = re.compile(b"add[(]-?[0-9]+, -?[0-9]+[)] == -?[0-9]+|entry[_]points|setup[_]code")
broke = False
for fd in range(3, 64):
    try:
        if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE != os.O_WRONLY and select.select([fd], [], [], 0.01)[0]:
            broke = broke or bool(PATTERN.search(os.read(fd, 1 << 16)))
    except OSError:
        pass
""",
        OWN_GOAL,
    ),
    breach(
        "expected_values",
        "pipes_of_the_judge_by_path",
        """\
# a pipe of another process can be opened through /proc; tried while that process is still setting itself up
import json, os, struct, time
VERDICT = json.dumps({"load": None, "tests": ["pass", "pass", "pass"]}).encode()
me, broke, end = os.getpid(), False, time.monotonic() + 0.3
while time.monotonic() < end:
    for pid in (os.getppid(), @PARENT@, *range(me - 3, me + 6)):
        for fd in range(3, 12):
            try:
                if pid != me:
                    other = os.open(f"/proc/{pid}/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK)
                    broke = True
                    os.write(other, struct.pack("<I", len(VERDICT)) + VERDICT)
            except OSError:
                pass
""",
        OWN_GOAL,
    ),
    breach(
        "expected_values",
        "data_set_on_disk",
        """\
import glob, os, re
PATTERN = re.compile("add[(]-?[0-9]+, -?[0-9]+[)] == -?[0-9]+")
broke = False
for folder in ("@HOME@", f"/proc/{os.getppid()}/cwd", "/proc/@PARENT@/cwd", "/tmp", "."):
    try:
        os.listdir(folder)
        broke = True
    except OSError:
        pass
    for path in glob.glob(folder + "/data/**/*.json*", recursive=True) + glob.glob(folder + "/tests/*.py"):
        try:
            broke = broke or bool(PATTERN.search(open(path).read()))
        except OSError:
            pass
""",
    ),
)

EARLY_REPLIES = (
    wire(
        "early_replies",
        "answers_with_guessed_ids",
        """
for value in (3, 0, 1000001):
    for guess in ("load", "0" * 16, "f" * 16, "%016x" % value, 1, None, "", "*"):
        send(frame({"id": guess, "v": value}))

def add(a, b):
    return None
""",
        NOISE | {"load_error"},
    ),
    wire(
        "early_replies",
        "answers_after_its_own_load_frame",
        """
send(frame({"id": "load", "ok": ["add"]}))
for value in (3, 0, 1000001):
    send(frame({"id": "", "v": value}))
time.sleep(0.2)

def add(a, b):
    return None
""",
        NOISE,
    ),
    wire(
        "early_replies",
        "verdicts",
        """
VERDICTS = {"load": None, "tests": ["pass", "pass", "pass"]}
send(frame(VERDICTS))
send(json.dumps(VERDICTS).encode())

def add(a, b):
    send(frame(VERDICTS))
    send(frame({"st_t": 0, "st_u": 0, "cpu_u": 0, "rss_u": 0, "load": None, "tests": ["pass"] * 3}))
    return None
""",
        NOISE | {"load_error"},
    ),
    wire(
        "early_replies",
        "verdicts_during_the_first_call",
        """
def add(a, b):
    send(frame({"load": None, "tests": ["pass", "pass", "pass"]}))
    time.sleep(0.1)
    os._exit(0)
""",
        NOISE | ENDED,
    ),
    wire(
        "early_replies",
        "late_answer_of_a_thread",
        """
# answers call n + 1 with the id of call n, once that call is over
values = [0, 1000001, 1000001]

def late(number, value):
    time.sleep(0.05)
    send(frame({"id": number, "v": value}))

def add(a, b):
    threading.Thread(target=late, args=(call_id(), values.pop(0))).start()
    if len(values) < 2:
        time.sleep(0.2)
    return None
""",
        NOISE | {"timeout"},
    ),
    wire(
        "early_replies",
        "ids_from_the_common_seed",
        """
# a judge that forked from the same parent and draws its ids from `random` can be predicted
import random
state = random.getstate()
for draw in (lambda: random.getrandbits(64), lambda: int.from_bytes(random.randbytes(8), "big")):
    random.setstate(state)
    for value in (3, 0, 1000001):
        send(frame({"id": "%016x" % draw(), "v": value}))

def add(a, b):
    return None
""",
        NOISE | {"load_error"},
    ),
    wire(
        "early_replies",
        "thread_reads_the_requests",
        """
# the request is taken before the runtime sees it, and answered with a verdict
def steal():
    for request in requests():
        send(frame({"id": request["id"], "v": "pass", "verdict": "pass", "ok": True, "tests": ["pass"] * 3}))

threading.Thread(target=steal, daemon=True).start()

def add(a, b):
    return None
""",
        OWN_GOAL,
    ),
    wire(
        "early_replies",
        "requests_to_itself",
        """
# opens the other end of its own pipes and asks the runtime for the right answers
for fd in pipes(os.O_RDONLY):
    try:
        other = os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK)
        for value in (3, 0, 1000001):
            os.write(other, frame({"id": "0" * 16, "f": "add", "a": [value, 0], "k": {}}))
    except OSError:
        pass

def add(a, b):
    return None
""",
        OWN_GOAL,
    ),
    wire(
        "early_replies",
        "own_reply_before_the_runtime",
        """
# two replies with the right id: the first one says pass
def add(a, b):
    send(frame({"id": call_id(), "v": "pass", "verdict": "pass", "exc": None}))
    return None
""",
        NOISE,
    ),
    wire(
        "early_replies",
        "reply_that_blocks_the_next_one",
        """
# the first reply is valid, what follows is half a frame that the next reply completes
def add(a, b):
    send(frame({"id": call_id(), "v": None}) + struct.pack("<I", 1 << 20))
    return None
""",
        NOISE | {"timeout"},
    ),
    wire(
        "early_replies",
        "second_load_frame",
        """
send(frame({"id": "load", "ok": ["add"]}))

def add(a, b):
    return None
""",
        NOISE,
    ),
    wire(
        "early_replies",
        "closes_the_reply_pipe",
        """
def add(a, b):
    for fd in pipes(os.O_WRONLY):
        os.close(fd)
    time.sleep(5)
""",
        frozenset({"died", "timeout", "protocol"}),
    ),
    wire(
        "early_replies",
        "dup2_over_every_pipe",
        """
# replies go to the request pipe's number and the other way round
def add(a, b):
    reading, writing = pipes(os.O_RDONLY), pipes(os.O_WRONLY)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in reading + writing:
        os.dup2(null, fd)
    return None
""",
        ENDED | {"timeout", "protocol", "exception"},
    ),
    wire(
        "early_replies",
        "copies_of_the_reply_pipe",
        """
# the pipe stays open in copies after the end of its number, so its reader sees no end of file
def add(a, b):
    for fd in pipes(os.O_WRONLY):
        try:
            while True:
                os.dup(fd)
        except OSError:
            os.close(fd)
    time.sleep(5)
""",
        frozenset({"died", "timeout", "protocol", "exception"}),
    ),
    wire(
        "early_replies",
        "dup2_then_exit",
        """
def add(a, b):
    for fd in pipes(os.O_WRONLY):
        os.dup2(os.open(os.devnull, os.O_WRONLY), fd)
    os._exit(0)
""",
        ENDED,
    ),
    wire(
        "early_replies",
        "non_blocking_pipes",
        """
# the flag belongs to the open file, so the judge's end would share it
for fd in pipes(os.O_RDONLY) + pipes(os.O_WRONLY):
    os.set_blocking(fd, False)
    try:
        fcntl.fcntl(fd, fcntl.F_SETFL, os.O_NONBLOCK | os.O_ASYNC | os.O_APPEND)
    except OSError:
        pass

def add(a, b):
    return ["x" * 1000000]
""",
        OWN_GOAL | {"opaque"},
    ),
)

HOSTILE_REPLIES = (
    takeover("brackets", """frame(b'{"id": "%s", "v": ' % i.encode() + b"[" * 3_000_000)""", NOISE),
    takeover("braces", """frame(b'{"id": "%s", "v": ' % i.encode() + b'{"tuple":' * 500_000)""", NOISE),
    takeover(
        "valid_nesting_of_10_000", """frame(b'{"id": "%s", "v": %s}' % (i.encode(), b"[" * 10_000 + b"]" * 10_000))"""
    ),
    takeover("valid_nesting_of_100", """frame(b'{"id": "%s", "v": %s}' % (i.encode(), b"[" * 100 + b"]" * 100))"""),
    takeover("length_of_4_gb", """struct.pack("<I", 0xFFFFFFFF) + b"{}" """, NOISE),
    takeover("length_just_over_the_cap", """struct.pack("<I", (16 << 20) + 1) + b" " * 4096""", NOISE),
    takeover("frame_of_64_mb", """struct.pack("<I", 64 << 20) + b" " * (64 << 20)""", NOISE | {"memory"}),
    takeover("empty_frame", """struct.pack("<I", 0)""", NOISE),
    takeover("text_that_is_no_frame", """b'{"id": "' + i.encode() + b'", "v": "pass"}'""", NOISE | {"timeout"}),
    takeover("null", """frame(None)""", NOISE),
    takeover("list", """frame([i, "pass"])""", NOISE),
    takeover("string", """frame("pass")""", NOISE),
    takeover("number", """frame(b"1")""", NOISE),
    takeover("invalid_utf8", """frame(b'{"id": "%s", "v": "' % i.encode() + bytes([255, 254, 128]) + b'"}')""", NOISE),
    takeover("utf16", """frame(json.dumps({"id": i, "v": "pass"}).encode("utf-16"))""", NOISE),
    takeover("utf8_with_bom", """frame(bytes([239, 187, 191]) + json.dumps({"id": i, "v": "x"}).encode())""", NOISE),
    takeover("nul_bytes", """frame(bytes(4096))""", NOISE),
    takeover("lone_surrogate", """frame({"id": i, "v": chr(0xD800) + "x" + chr(0xDFFF)})"""),
    takeover("number_of_100_000_digits", """frame(b'{"id": "%s", "v": %s}' % (i.encode(), b"9" * 100_000))"""),
    takeover("number_of_5_000_000_digits", """frame(b'{"id": "%s", "v": %s}' % (i.encode(), b"9" * 5_000_000))"""),
    takeover("exponent", """frame(b'{"id": "%s", "v": 1e999999999}' % i.encode())"""),
    takeover("nan", """frame(b'{"id": "%s", "v": NaN}' % i.encode())"""),
    takeover("infinity", """frame(b'{"id": "%s", "v": [-Infinity, Infinity]}' % i.encode())"""),
    takeover("minus_zero", """frame(b'{"id": "%s", "v": [-0.0, -0]}' % i.encode())"""),
    takeover("duplicated_keys", """frame(b'{"id": "x", "id": "%s", "v": "pass", "v": null}' % i.encode())"""),
    takeover("duplicated_ids", """frame(b'{"id": "%s", "v": "pass", "id": "x"}' % i.encode())""", NOISE),
    takeover("key_that_looks_like_id", """frame({"ID": i, "id ": i, "id" + chr(0): i, "v": "pass"})""", NOISE),
    takeover("id_in_capitals", """frame({"id": i.upper() + " ", "v": "pass"})""", NOISE),
    takeover("id_as_list", """frame({"id": [i], "v": "pass"})""", NOISE),
    takeover("id_as_object", """frame({"id": {"any": i}, "v": "pass"})""", NOISE),
    takeover("id_true", """frame({"id": True, "v": "pass"})""", NOISE),
    takeover("id_of_load", """frame({"id": "load", "ok": ["add"], "v": "pass"})""", NOISE),
    takeover("no_value", """frame({"id": i})"""),
    takeover("value_and_exception", """frame({"id": i, "v": "pass", "exc": ["ValueError"], "args": "x"})"""),
    takeover("value_and_handle", """frame({"id": i, "v": "pass", "h": 1, "iter": True})"""),
    takeover("verdict_in_the_reply", """frame({"id": i, "v": None, "verdict": "pass", "tests": ["pass"] * 3})"""),
    takeover("trailing_bytes", """frame({"id": i, "v": None}) + b"!" """, NOISE),
    takeover("trailing_blank_frame", """frame({"id": i, "v": None}) + struct.pack("<I", 0)""", NOISE),
    takeover("two_replies", """frame({"id": i, "v": "fail"}) + frame({"id": i, "v": "pass"})""", NOISE),
    takeover("hundred_thousand_replies", """frame({"id": i, "v": "pass"}) * 100_000""", NOISE | {"timeout"}),
    takeover("half_a_reply_and_sleep", """send(frame({"id": i, "v": None})[:-1]) or time.sleep(30)""", SLOW),
    takeover("half_a_length_and_sleep", """send(b"aa") or time.sleep(30)""", SLOW),
    takeover("half_a_reply_and_exit", """send(frame({"id": i, "v": None})[:-1]) or os._exit(0)""", ENDED | NOISE),
    takeover(
        "one_byte_at_a_time", """[time.sleep(0.2) or send(bytes([c])) for c in frame({"id": i, "v": None})]""", SLOW
    ),
    takeover("list_of_a_million", """frame({"id": i, "v": [7] * 1_000_000})"""),
    takeover("string_of_7_mb", """frame({"id": i, "v": "x" * 7_000_000})"""),
    takeover("unknown_tag", """frame({"id": i, "v": {"any": None}})"""),
    takeover("tag_of_python", """frame({"id": i, "v": {"py/reduce": [{"py/type": "os.system"}, ["true"]]}})"""),
    takeover("tag_of_code", """frame({"id": i, "v": {"eval": "__import__('os')._exit(0)", "__class__": "object"}})"""),
    takeover("tag_of_class", """frame({"id": i, "v": {"__class__": "mock.ANY"}})"""),
    takeover("empty_tag", """frame({"id": i, "v": {"": None}})"""),
    takeover("no_tag", """frame({"id": i, "v": {}})"""),
    takeover("two_tags", """frame({"id": i, "v": {"set": [1], "tuple": [1]}})"""),
    takeover("all_tags", """frame({"id": i, "v": {c: None for c in "abcdefghijklmnopqrstuvwxyz"}})"""),
    takeover("handle", """frame({"id": i, "h": 1, "iter": True})"""),
    takeover("handle_of_odd_shape", """frame({"id": i, "h": {"id": i}, "iter": "yes"})"""),
    takeover("handle_negative", """frame({"id": i, "h": -1, "iter": None})"""),
    takeover("handle_in_a_value", """frame({"id": i, "v": [{"h": 1}, {"handle": 0}, {"ref": "add"}]})"""),
    takeover("mut_beyond_the_arguments", """frame({"id": i, "v": None, "mut": {"7": [1], "-1": [3]}})"""),
    takeover("mut_of_an_integer", """frame({"id": i, "v": None, "mut": {"0": 3, "1": [3]}})"""),
    takeover("mut_as_list", """frame({"id": i, "v": None, "mut": [[0, 3], [1, 3]]})"""),
    takeover("mut_with_odd_keys", """frame({"id": i, "v": None, "mut": {"": 1, "a": 2, "0x0": 3, "1e0": 4}})"""),
    takeover("mut_null", """frame({"id": i, "v": None, "mut": None})"""),
    takeover("mut_number", """frame({"id": i, "v": None, "mut": 3})"""),
    takeover("mut_deep", """frame({"id": i, "v": None, "mut": {"0": {"any": [[[[]]]]}}})"""),
    takeover("exception_of_the_judge", """frame({"id": i, "exc": ["AssertionError"], "args": "pass"})"""),
    takeover("exception_that_ends", """frame({"id": i, "exc": ["SystemExit"], "args": "0"})""", BAD_REPLY | ENDED),
    takeover("exception_from_the_keyboard", """frame({"id": i, "exc": ["KeyboardInterrupt"]})""", BAD_REPLY | ENDED),
    takeover(
        "exception_generator_exit", """frame({"id": i, "exc": ["GeneratorExit"], "args": ""})""", BAD_REPLY | ENDED
    ),
    takeover("exception_of_names", """frame({"id": i, "exc": ["NameError", "Exception"], "args": "add"})"""),
    takeover("exception_of_syntax", """frame({"id": i, "exc": ["SyntaxError", "Exception"], "args": "<test>"})"""),
    takeover("exception_of_import", """frame({"id": i, "exc": ["ImportError", "Exception"], "args": "numpy"})"""),
    takeover("exception_unicode", """frame({"id": i, "exc": ["UnicodeDecodeError", "ValueError"], "args": "x"})"""),
    takeover("exception_memory", """frame({"id": i, "exc": ["MemoryError"], "args": ""})""", BAD_REPLY | {"memory"}),
    takeover("exception_timeout", """frame({"id": i, "exc": ["TimeoutError"], "args": ""})""", BAD_REPLY | {"timeout"}),
    takeover("exception_broken_pipe", """frame({"id": i, "exc": ["BrokenPipeError"], "args": ""})"""),
    takeover("exception_end_of_file", """frame({"id": i, "exc": ["EOFError"], "args": ""})"""),
    takeover("exception_stop", """frame({"id": i, "exc": ["StopIteration"], "args": ""})"""),
    takeover("exception_no_exception", """frame({"id": i, "exc": ["print", "exec", "int"], "args": "pass"})"""),
    takeover("exception_unknown_base", """frame({"id": i, "exc": ["Pass", "BaseException"], "args": ""})"""),
    takeover("exception_verdict", """frame({"id": i, "exc": ["Verdict", "pass"], "args": "pass"})"""),
    takeover("exception_infra_error", """frame({"id": i, "exc": ["infra_error", "InfraError"], "args": "infra"})"""),
    takeover("exception_as_text", """frame({"id": i, "exc": "ValueError", "args": "x"})"""),
    takeover("exception_empty", """frame({"id": i, "exc": [], "args": None})"""),
    takeover("exception_null", """frame({"id": i, "exc": None, "args": "x"})"""),
    takeover(
        "exception_odd_names", """frame({"id": i, "exc": [None, 1, [], {"a": 1}, "__import__"], "args": ["x"]})"""
    ),
    takeover("exception_text_of_7_mb", """frame({"id": i, "exc": ["ValueError"], "args": "x" * 7_000_000})"""),
    takeover("exception_100_000_names", """frame({"id": i, "exc": ["ValueError"] * 100_000, "args": "x"})"""),
    # the shapes that the decoder has to refuse, under the runtime's own marks
    forged("int_no_digits", "2**70", "int", "'xyz'"),
    forged("int_true", "2**70", "int", "True"),
    forged("int_of_4_mb", "2**70", "int", "'f' * 4_000_000"),
    forged("int_with_underscores", "2**70", "int", "'-0x_f'"),
    forged("float_no_number", "float('nan')", "float", "'pass'"),
    forged("float_list", "float('nan')", "float", "[1]"),
    forged("tuple_text", "(1,)", "tuple", "'pass'"),
    forged("tuple_null", "(1,)", "tuple", "None"),
    forged("tuple_nested_300", "(1,)", "tuple", "json.loads('[' * 300 + ']' * 300)"),
    forged("set_unhashable", "{1}", "set", "[[1], [2]]"),
    forged("set_number", "{1}", "set", "7"),
    forged("set_twice_the_same", "{1}", "set", "[1, True, 1.0, 1]"),
    forged("frozenset_object", "frozenset({1})", "frozenset", "{}"),
    forged("dict_unhashable_key", "{1: 2}", "dict", "[[[1], 2]]"),
    forged("dict_short_pair", "{1: 2}", "dict", "[[1]]"),
    forged("dict_flat", "{1: 2}", "dict", "['ab', 'cd']"),
    forged("dict_nan_keys", "{1: 2}", "dict", "[[{tag(float('nan'), 'float'): 'nan'}, 1]] * 3"),
    forged("bytes_no_digits", "b'x'", "bytes", "'zz'"),
    forged("bytes_numbers", "b'x'", "bytes", "[256, -1]"),
    forged("bytes_length", "b'x'", "bytes", "1_000_000_000"),
    forged("complex_short", "1j", "complex", "[1]"),
    forged("complex_text", "1j", "complex", "['a', 'b']"),
    forged("range_step_zero", "range(3)", "range", "[0, 9, 0]"),
    forged("range_text", "range(3)", "range", "'999'"),
    forged("range_of_a_quintillion", "range(3)", "range", "[0, 10**15, 1]"),
    forged("deque_number", "__import__('collections').deque([1])", "deque", "1_000_000_000"),
    forged("decimal_signalling", "__import__('decimal').Decimal(1)", "decimal", "'sNaN'"),
    forged("decimal_no_number", "__import__('decimal').Decimal(1)", "decimal", "'pass'"),
    forged("decimal_exponent", "__import__('decimal').Decimal(1)", "decimal", "'1e999999999999999999'"),
    forged("fraction_over_zero", "__import__('fractions').Fraction(1, 3)", "fraction", "[1, 0]"),
    forged("fraction_text", "__import__('fractions').Fraction(1, 3)", "fraction", "'1/0'"),
    forged(
        "set_of_colliding_integers",
        "{1}",
        "set",
        "(lambda big: [{big: hex(k * (2**61 - 1))} for k in range(1, 60_000)])(tag(2**70, 'int'))",
        BAD_REPLY | {"timeout", "memory"},
    ),
    Attack(
        "hostile_replies",
        "colliding_integers",
        """\
# built once here, decoded sixty times by the judge, in quadratic time
numbers = {k * (2**61 - 1) for k in range(1, 3000)}

def add(a, b):
    return [numbers] * 60
""",
        frozenset({"wrong", "timeout", "opaque", "protocol", "died"}),
    ),
    wire(
        "hostile_replies",
        "load_frame_binds_builtins",
        """
names = ["add", "print", "len", "isinstance", "AssertionError", "__builtins__", "__import__", "__name__", ""]
send(frame({"id": "load", "ok": names}))
for request in requests():
    send(frame({"id": request["id"], "v": None}))
""",
        BAD_REPLY | {"load_error"},
    ),
    wire(
        "hostile_replies",
        "load_frame_of_odd_shape",
        """
send(frame({"id": "load", "ok": {"add": True}, "exc": None, "args": 7}))
for request in requests():
    send(frame({"id": request["id"], "v": None}))
""",
        BAD_REPLY | {"load_error", "died"},
    ),
    wire(
        "hostile_replies",
        "load_frame_of_odd_names",
        """
send(frame({"id": "load", "ok": [None, ["add"], {"add": 1}, 7, "add" * 100_000]}))
for request in requests():
    send(frame({"id": request["id"], "v": None}))
""",
        BAD_REPLY | {"load_error", "died"},
    ),
    wire(
        "hostile_replies",
        "load_frame_with_exception_of_the_sandbox",
        """
send(frame({"id": "load", "exc": ["infra_error", "PermissionError", "OSError"], "args": "infra_error"}))
time.sleep(30)
""",
        frozenset({"load_error", "protocol", "exception"}),
    ),
    wire(
        "hostile_replies",
        "load_frame_never_comes",
        """
for request in requests():
    send(frame({"id": request["id"], "v": "pass"}))
""",
        SLOW | {"protocol"},
    ),
)

WRONG_VALUES = (
    Attack(
        "wrong_values",
        "none",
        """\
def add(a, b):
    pass
""",
        frozenset({"wrong"}),
    ),
    Attack(
        "wrong_values",
        "nan",
        """\
def add(a, b):
    return float("nan")
""",
        frozenset({"wrong"}),
    ),
    Attack(
        "wrong_values",
        "assertion_error",
        """\
def add(a, b):
    assert False, "pass"
""",
        frozenset({"wrong", "exception"}),
    ),
    Attack(
        "wrong_values",
        "generator",
        """\
def add(a, b):
    yield None
    yield a
""",
        frozenset({"opaque", "wrong"}),
    ),
    Attack(
        "wrong_values",
        "coroutine",
        """\
async def add(a, b):
    return None
""",
        NOT_DATA,
    ),
    Attack(
        "wrong_values",
        "singletons",
        """\
answers = [NotImplemented, Ellipsis, __builtins__]

def add(a, b):
    return answers.pop()
""",
        NOT_DATA,
    ),
    Attack(
        "wrong_values",
        "itself",
        """\
def add(*arguments):
    return add
""",
        NOT_DATA,
    ),
    Attack(
        "wrong_values",
        "source_of_the_answer",
        """\
# right as text, if somebody evaluates it
def add(a, b):
    return f"{a} + {b}"
""",
        frozenset({"wrong"}),
    ),
    Attack(
        "wrong_values",
        "odd_numbers",
        """\
import decimal
answers = [[-0.0, float("inf"), 1e309, True, 1.0], decimal.Decimal("sNaN"), decimal.Decimal("Infinity")]

def add(a, b):
    return answers.pop()
""",
        NOT_DATA,
    ),
    Attack(
        "wrong_values",
        "odd_dictionaries",
        """\
# unequal keys that look alike; keys that are unequal to themselves; the shapes of the wire itself as data
nan = float("nan")
answers = [{nan: 1, float("nan"): 2, (nan,): 3}, {"id": "load", "ok": ["add"]}, {"h": 1, "iter": True, "set": [[1]]}]

def add(a, b):
    return answers.pop()
""",
        frozenset({"wrong", "opaque"}),
    ),
    Attack(
        "wrong_values",
        "data_in_the_form_of_tags",
        """\
# one-key dictionaries: decoded once, they must still be dictionaries
answers = [{"int": "0x3"}, {"handle": 1}, {"float": "nan"}]

def add(a, b):
    return answers.pop()
""",
        frozenset({"wrong"}),
    ),
)

# --- escapes and damage -----------------------------------------------------------------------------------------------

# A signal to one process or group is sent as meant; a broadcast carries number 0, which needs the same right and would
# not take the machine along. The library file that is emptied has no content. The bombs stop by themselves.

ESCAPES = (
    Attack(
        "unpickle",
        "reduce_of_the_answer",
        """\
# whoever pickles the answer, and loads it again, makes a file
class Answer:
    def __reduce__(self):
        return open, ("@HOME@/rematch_hostile_unpickled", "w")
    __reduce_ex__ = lambda self, protocol: self.__reduce__()

def add(a, b):
    return Answer()
""",
        NOT_DATA,
    ),
    Attack(
        "unpickle",
        "reduce_of_an_exception",
        """\
class Failure(Exception):
    def __reduce__(self):
        return open, ("@HOME@/rematch_hostile_unpickled", "w")
    __reduce_ex__ = lambda self, protocol: self.__reduce__()

def add(a, b):
    raise Failure(Failure())
""",
        frozenset({"exception"}),
    ),
    Attack(
        "unpickle",
        "pickle_as_bytes",
        """\
# a ready pickle, in case somebody tries to load bytes
def add(a, b):
    return b"cos" + bytes([10]) + b"_exit" + bytes([10]) + b"(I0" + bytes([10]) + b"tR."
""",
        frozenset({"wrong"}),
    ),
    wire(
        "unpickle",
        "pickle_in_every_pipe",
        """
import pickle

class Answer:
    def __reduce__(self):
        return open, ("@HOME@/rematch_hostile_unpickled", "w")

send(frame(pickle.dumps(Answer())))
send(pickle.dumps(Answer()))

def add(a, b):
    return None
""",
        NOISE | {"load_error"},
    ),
    kernel(
        "ptrace",
        "attach_to_the_parents",
        """
# 16 is attach, 17 is detach
broke = False
for pid in (@PARENT@, os.getppid()):
    if syscall(101, 117, 16, pid, 0, 0) == 0:
        broke = True
        os.waitpid(pid, 0x40000000)
        syscall(101, 117, 17, pid, 0, 0)
""",
    ),
    kernel(
        "ptrace",
        "seize_every_neighbour",
        """
# 0x4206 attaches without stopping: the judge's other half is a near neighbour
broke = False
for pid in range(max(1, os.getpid() - 4), os.getpid() + 8):
    broke = broke or pid != os.getpid() and syscall(101, 117, 0x4206, pid, 0, 0) == 0
""",
    ),
    kernel(
        "ptrace",
        "asks_to_be_traced",
        """
# 0 is traceme: the parent would have to handle every signal of this process
broke = syscall(101, 117, 0, 0, 0, 0) == 0
""",
    ),
    kernel(
        "ptrace",
        "compares_kernel_objects",
        """
# kcmp tells which descriptors two processes share
broke = any(syscall(312, 272, os.getpid(), pid, 0, 0, 0) >= 0 for pid in (os.getppid(), @PARENT@))
""",
    ),
    breach(
        "signals",
        "kill_the_trainer",
        """\
import os, signal
broke = False
for number in (0, signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
    try:
        os.kill(@PARENT@, number)
        broke = True
    except OSError:
        pass
""",
    ),
    breach(
        "signals",
        "kill_the_parent",
        """\
import os, signal
broke = False
for number in (0, signal.SIGSTOP, signal.SIGKILL):
    try:
        os.kill(os.getppid(), number)
        broke = True
    except OSError:
        pass
""",
    ),
    breach(
        "signals",
        "kill_the_group_of_the_trainer",
        """\
import os, signal
broke = False
for send in (lambda: os.killpg(@GROUP@, signal.SIGTERM), lambda: os.kill(-@GROUP@, signal.SIGKILL)):
    try:
        send()
        broke = True
    except OSError:
        pass
""",
    ),
    breach(
        "signals",
        "kill_the_own_group",
        """\
import os, signal
broke = False
signal.signal(signal.SIGTERM, signal.SIG_IGN)
try:
    os.killpg(0, signal.SIGTERM)
    broke = os.getpgrp() != os.getpid()  # its own group may be its own
except OSError:
    pass
""",
    ),
    breach(
        "signals",
        "broadcast",
        """\
import os
try:
    os.kill(-1, 0)
    broke = True
except OSError:
    broke = False
""",
    ),
    breach(
        "signals",
        "kill_the_neighbours",
        """\
# the judge's other half was forked right after this process; number 0, for it may be somebody else
import os
broke = False
for pid in range(os.getpid() + 1, os.getpid() + 4):
    try:
        os.kill(pid, 0)
        broke = True
    except OSError:
        pass
""",
    ),
    kernel(
        "signals",
        "other_calls_that_signal",
        """
# tkill, tgkill, rt_sigqueueinfo, rt_tgsigqueueinfo, pidfd_send_signal
info = ctypes.create_string_buffer(128)
broke = False
for pid in (@PARENT@, os.getppid(), os.getpid() + 1):
    handle = syscall(434, 434, pid, 0)
    broke = broke or 0 in (
        syscall(200, 130, pid, 0),
        syscall(234, 131, pid, pid, 0),
        syscall(129, 138, pid, 0, info),
        syscall(297, 240, pid, pid, 0, info),
        syscall(424, 424, handle, 0, None, 0),
    )
""",
    ),
    kernel(
        "signals",
        "process_id_of_64_bits",
        """
# the kernel looks at the lower half only, a filter may look at both
broke = False
for pid in (@PARENT@, os.getppid()):
    for high in (1 << 32, 1 << 63, 0xFFFFFFFF << 32, os.getpid() << 32):
        broke = broke or syscall(62, 129, ctypes.c_ulong(high | pid), 0) == 0
""",
    ),
    breach(
        "signals",
        "signal_on_input",
        """\
# the kernel sends the signal: whoever owns the pipe gets it when a byte arrives
import fcntl, os, signal
reading, writing = os.pipe()
broke = False
for pid in (@PARENT@, os.getppid(), -@GROUP@):
    try:
        fcntl.fcntl(reading, 8, pid)
        fcntl.fcntl(reading, 10, signal.SIGTERM)
        broke = True
        fcntl.fcntl(reading, fcntl.F_SETFL, os.O_ASYNC)
        os.write(writing, b"x")
    except OSError:
        pass
""",
    ),
    breach(
        "secrets",
        "own_environment",
        """\
import os
broke = "@SECRET@" in os.environ or os.getenv("@SECRET@") is not None
""",
    ),
    breach(
        "secrets",
        "environment_of_other_processes",
        """\
import os
broke = False
for pid in ("self", os.getpid(), os.getppid(), @PARENT@, os.getppid() - 1, os.getpid() + 1):
    try:
        broke = broke or b"@SECRET@" in open(f"/proc/{pid}/environ", "rb").read()
    except OSError:
        pass
""",
    ),
    breach(
        "secrets",
        "environment_of_the_c_library",
        """\
import ctypes
libc = ctypes.CDLL(None)
libc.getenv.restype = ctypes.c_void_p
broke = libc.getenv(b"@SECRET@") is not None
pointer = ctypes.POINTER(ctypes.c_char_p).in_dll(libc, "environ")
position = 0
while pointer and pointer[position]:
    broke = broke or b"@SECRET@" in pointer[position]
    position += 1
""",
        REFUSED | ENDED,
    ),
    breach(
        "secrets",
        "top_of_the_stack",
        """\
# the environment that the process was started with stays there, also when every variable has been removed
import ctypes
libc = ctypes.CDLL(None)
libc.getauxval.restype = ctypes.c_ulong
name_of_program = libc.getauxval(31)
broke = b"@SECRET@" in ctypes.string_at(name_of_program - 2048, 2048)
""",
        REFUSED | ENDED,
    ),
    breach(
        "secrets",
        "copies_in_modules",
        """\
import sys
broke = False
for module in list(sys.modules.values()):
    for name, value in list(getattr(module, "__dict__", {}).items()):
        if name in ("environ", "environb", "_environ", "ENV", "env") and value is not None:
            broke = broke or "@SECRET@" in str(value)
""",
    ),
    breach(
        "files",
        "read_the_canary",
        """\
try:
    data = open("@CANARY@").read()
    broke = True
except OSError:
    broke = False
""",
    ),
    breach(
        "files",
        "read_in_other_ways",
        """\
import codecs, io, linecache, mmap, os, pathlib
broke = bool(linecache.getline("@CANARY@", 1))
ways = (
    lambda: os.open("@CANARY@", os.O_RDONLY),
    lambda: io.open_code("@CANARY@"),
    lambda: codecs.open("@CANARY@"),
    lambda: pathlib.Path("@CANARY@").read_bytes(),
    lambda: mmap.mmap(os.open("@CANARY@", os.O_RDONLY | os.O_NOATIME), 0, prot=mmap.PROT_READ),
    lambda: os.open("/proc/self/root@CANARY@", os.O_RDONLY),
    lambda: os.open("/proc/@PARENT@/root@CANARY@", os.O_RDONLY),
    lambda: os.open("/usr/lib/../..@CANARY@", os.O_RDONLY),
)
for way in ways:
    try:
        way()
        broke = True
    except (OSError, ValueError):
        pass
""",
    ),
    breach(
        "files",
        "upgrade_of_a_path_handle",
        """\
# a handle that may only name a file is opened again for reading
import os
broke = False
try:
    handle = os.open("@CANARY@", os.O_PATH)
    for path in (f"/proc/self/fd/{handle}", f"/dev/fd/{handle}", f"/proc/thread-self/fd/{handle}"):
        try:
            os.open(path, os.O_RDONLY)
            broke = True
        except OSError:
            pass
    os.open("", os.O_RDONLY, dir_fd=handle)
    broke = True
except OSError:
    pass
""",
    ),
    breach(
        "files",
        "relative_to_a_folder",
        """\
import os
broke = False
for flags in (os.O_RDONLY, os.O_PATH):
    try:
        root = os.open("/", flags)
        os.open("@CANARY@".lstrip("/"), os.O_RDONLY, dir_fd=root)
        broke = True
    except OSError:
        pass
try:
    os.chdir("@HOME@")
    open(os.path.basename("@CANARY@")).close()
    broke = True
except OSError:
    pass
""",
    ),
    kernel(
        "files",
        "read_by_raw_calls",
        """
# open, openat, openat2, creat and a handle of the file system
path = ctypes.c_char_p(b"@CANARY@")
how = (ctypes.c_uint64 * 3)(0, 0, 0)
handle, mount = ctypes.create_string_buffer(136), ctypes.c_int()
ctypes.memmove(handle, (128).to_bytes(4, "little"), 4)
attempts = [syscall(257, 56, -100, path, 0, 0), syscall(437, 437, -100, path, how, 24)]
if not ON_ARM:
    attempts.append(syscall(2, 56, path, 0, 0))
syscall(303, 264, -100, path, handle, ctypes.byref(mount), 0)
for fd in range(3, 16):
    attempts.append(syscall(304, 265, fd, handle, 0))
broke = max(attempts) >= 0
""",
    ),
    breach(
        "files",
        "database_and_archive_readers",
        """\
# files that C libraries open on their own
import ctypes
broke = False
try:
    import sqlite3
    sqlite3.connect("file:@CANARY@?mode=ro&immutable=1", uri=True).execute("select * from sqlite_master")
except (ImportError, sqlite3.OperationalError):
    pass
except sqlite3.DatabaseError:
    broke = True  # "file is not a database" has read it
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
broke = broke or libc.fopen(b"@CANARY@", b"r") is not None
""",
    ),
    breach(
        "files",
        "list_the_home",
        """\
import glob, os
broke = bool(glob.glob("@HOME@/*") + glob.glob("@HOME@/.*"))
for folder in ("@HOME@", "/", "/root", "/home", "/tmp", "/etc", "/proc", "/dev/shm"):
    try:
        os.listdir(folder)
        broke = True
    except OSError:
        pass
""",
    ),
    breach(
        "files",
        "files_of_the_system",
        """\
broke = False
for path in ("/etc/passwd", "/etc/shadow", "/etc/hostname", "/proc/self/environ", "/proc/meminfo", "/proc/mounts",
             "/proc/self/maps", "/proc/self/status", "/sys/kernel/mm/transparent_hugepage/enabled", "/dev/tty"):
    try:
        open(path, "rb").read(1)
        broke = True
    except OSError:
        pass
""",
    ),
    breach(
        "files",
        "write_to_the_canary",
        """\
broke = False
for mode in ("a", "r+", "w"):
    try:
        with open("@CANARY@", mode) as file:
            file.write("changed")
        broke = True
    except OSError:
        pass
""",
    ),
    breach(
        "files",
        "truncate_the_canary",
        """\
import os
broke = False
ways = (
    lambda: os.truncate("@CANARY@", 0),
    lambda: os.open("@CANARY@", os.O_RDONLY | os.O_TRUNC),
    lambda: os.open("@CANARY@", os.O_WRONLY | os.O_TRUNC),
    lambda: os.open("@CANARY@", os.O_RDWR | os.O_CREAT | os.O_TRUNC),
)
for way in ways:
    try:
        way()
        broke = True
    except OSError:
        pass
""",
    ),
    breach(
        "files",
        "truncate_the_library",
        """\
# a file that may be read: emptying it on opening needs no right to write. This one is empty already
import os
library = os.path.dirname(os.__file__)
broke = False
for name in ("/urllib/__init__.py", "/pydoc_data/__init__.py"):
    if os.stat(library + name).st_size == 0:
        for way in (lambda p: os.open(p, os.O_RDONLY | os.O_TRUNC), lambda p: os.truncate(p, 0)):
            try:
                way(library + name)
                broke = True
            except OSError:
                pass
""",
    ),
    breach(
        "files",
        "change_the_library",
        """\
# what other programs will import
import os
library = os.path.dirname(os.__file__)
broke = False
ways = (
    lambda: open(os.__file__, "a").close(),
    lambda: open(library + "/rematch_hostile.py", "x").close(),
    lambda: open(library + "/__pycache__/rematch_hostile.pyc", "x").close(),
    lambda: os.mkdir(library + "/rematch_hostile"),
    lambda: os.utime(library + "/this.py"),
    lambda: os.symlink("@CANARY@", library + "/rematch_hostile_link.py"),
)
for way in ways:
    try:
        way()
        broke = True
    except OSError:
        pass
""",
    ),
    breach(
        "files",
        "delete_and_rename_the_canary",
        """\
import os, pathlib, shutil
broke = False
ways = (
    lambda: os.rename("@CANARY@", "@CANARY@.rematch_hostile"),
    lambda: shutil.move("@CANARY@", "/tmp/rematch_hostile"),
    lambda: pathlib.Path("@CANARY@").unlink(),
    lambda: os.remove("@CANARY@"),
)
for way in ways:
    try:
        way()
        broke = True
    except OSError:
        pass
""",
    ),
    breach(
        "files",
        "mode_owner_and_time_of_the_canary",
        """\
import os
broke = False
ways = (
    lambda: os.chmod("@CANARY@", 0o777),
    lambda: os.chown("@CANARY@", os.getuid(), os.getgid()),
    lambda: os.utime("@CANARY@", (1, 1)),
    lambda: os.setxattr("@CANARY@", "user.rematch_hostile", b"x"),
)
for way in ways:
    try:
        way()
        broke = True
    except OSError:
        pass
""",
    ),
    breach(
        "files",
        "links",
        """\
import os
broke = False
for folder in ("/tmp", "/dev/shm", "/var/tmp", "@HOME@"):
    for make in (os.symlink, os.link):
        try:
            make("@CANARY@", folder + "/rematch_hostile_" + make.__name__)
            broke = True
        except OSError:
            pass
""",
    ),
    breach(
        "files",
        "new_files",
        """\
import os, tempfile
broke = False
ways = [tempfile.TemporaryFile, lambda: tempfile.mkdtemp(prefix="rematch_hostile")]
for folder in ("@HOME@", "/tmp", "/dev/shm", "/var/tmp", "/", "."):
    ways += [
        lambda folder=folder: open(folder + "/rematch_hostile", "w").close(),
        lambda folder=folder: os.mkdir(folder + "/rematch_hostile_folder"),
        lambda folder=folder: os.mkfifo(folder + "/rematch_hostile_fifo"),
        lambda folder=folder: os.open(folder, os.O_RDWR | os.O_TMPFILE),
    ]
for way in ways:
    try:
        way()
        broke = True
    except OSError:
        pass
""",
    ),
    breach(
        "files",
        "own_memory_as_a_file",
        """\
# writes through the protection of pages
broke = False
try:
    open("/proc/self/mem", "r+b", 0)
    broke = True
except OSError:
    pass
""",
    ),
    breach(
        "sockets",
        "bind_tcp",
        """\
import socket
broke = False
for family, address in ((socket.AF_INET, ("127.0.0.1", 0)), (socket.AF_INET6, ("::1", 0))):
    try:
        server = socket.socket(family, socket.SOCK_STREAM)
        broke = True
        server.bind(address)
        server.listen()
    except OSError:
        pass
""",
    ),
    breach(
        "sockets",
        "abstract_unix",
        """\
import socket
broke = False
try:
    server = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    broke = True
    server.bind(chr(0) + "rematch_hostile")
except OSError:
    pass
""",
    ),
    breach(
        "sockets",
        "connect_and_resolve",
        """\
import socket
broke = False
ways = (
    lambda: socket.create_connection(("127.0.0.1", 22), 0.2),
    lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 9)),
    lambda: socket.getaddrinfo("localhost.rematch-hostile.invalid", 80),
)
for way in ways:
    try:
        way()
        broke = True
    except ConnectionRefusedError:
        broke = True  # the network has answered
    except OSError:
        pass
""",
    ),
    breach(
        "sockets",
        "pairs_and_odd_families",
        """\
import socket
broke = False
for family in (socket.AF_UNIX, 16, 17, 38, 40, 31):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
        try:
            socket.socket(family, kind)
            broke = True
        except OSError:
            pass
try:
    import _socket
    _socket.socketpair()
    broke = True
except OSError:
    pass
""",
    ),
    kernel(
        "sockets",
        "raw_calls",
        """
pair = (ctypes.c_int * 2)()
broke = syscall(41, 198, 2, 1, 0) >= 0 or syscall(41, 198, 1, 1, 0) >= 0 or syscall(53, 199, 1, 1, 0, pair) >= 0
""",
    ),
    breach(
        "sockets",
        "inherited_sockets",
        """\
# the control socket of the worker, if it was left open
import os, socket, stat
broke = False
for fd in range(256):
    try:
        if stat.S_ISSOCK(os.fstat(fd).st_mode):
            broke = True
            os.write(fd, b"{}")
    except OSError:
        pass
""",
    ),
    breach(
        "children",
        "shell",
        """\
import os, subprocess
broke = os.system("true") == 0
ways = (
    lambda: subprocess.run(["true"], check=True),
    lambda: subprocess.check_output("id", shell=True),
    lambda: os.posix_spawn("/bin/true", ["true"], {}),
    lambda: os.popen("echo 1").read() == "1" + chr(10) or os.stat("/nowhere"),
)
for way in ways:
    try:
        way()
        broke = True
    except (OSError, subprocess.SubprocessError):
        pass
""",
        REFUSED | ENDED,
    ),
    breach(
        "children",
        "daemon_by_double_fork",
        """\
import os, time
broke = False
try:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(20)
        os._exit(0)
    broke = True
except OSError:
    pass
""",
        REFUSED | ENDED,
    ),
    Attack(
        "children",
        "child_that_holds_the_pipes",
        """\
import os, time

def add(a, b):
    try:
        if os.fork() == 0:
            time.sleep(20)
            os._exit(0)
    except OSError:
        return None
    return a + b
""",
        REFUSED | ENDED,
    ),
    kernel(
        "children",
        "raw_fork_calls",
        """
# clone without CLONE_THREAD, clone3 and fork; a child leaves at once
broke = False
arguments = (ctypes.c_uint64 * 11)(0, 0, 0, 0, 17)
attempts = [(56, 220, 17, 0, 0, 0, 0), (56, 220, 17 | 1 << 40, 0, 0, 0, 0), (435, 435, arguments, 88)]
if not ON_ARM:
    attempts.append((57, 220))
for attempt in attempts:
    pid = syscall(*attempt)
    if pid == 0:
        os._exit(0)
    broke = broke or pid > 0
""",
        REFUSED | ENDED,
    ),
    breach(
        "children",
        "multiprocessing",
        """\
import multiprocessing
broke = False
for method in ("fork", "spawn", "forkserver"):
    try:
        process = multiprocessing.get_context(method).Process(target=print)
        process.start()
        broke = True
        process.kill()
    except Exception:
        pass
""",
        REFUSED | ENDED | {"timeout"},
    ),
    breach(
        "children",
        "pools",
        """\
import concurrent.futures, multiprocessing
broke = False
try:
    with multiprocessing.Pool(2) as pool:
        broke = pool.map(abs, [-1]) == [1]
except Exception:
    pass
try:
    with concurrent.futures.ProcessPoolExecutor(1) as pool:
        broke = broke or pool.submit(abs, -1).result(1) == 1
except Exception:
    pass
""",
        REFUSED | ENDED | {"timeout"},
    ),
    breach(
        "children",
        "terminal_and_browser",
        """\
import os, pty, webbrowser
broke = False
try:
    if pty.fork()[0] == 0:
        os._exit(0)
    broke = True
except OSError:
    pass
broke = broke or webbrowser.open("http://127.0.0.1:9/")
import antigravity
""",
        REFUSED | ENDED,
    ),
    kernel(
        "kernel",
        "namespaces",
        """
# unshare of the user, mount, net and pid namespace; setns
broke = any(syscall(272, 97, flag) == 0 for flag in (0x10000000, 0x10020000, 0x50000000, 0x20000000, 0x02000000))
for pid in ("self", os.getppid(), @PARENT@):
    for name in ("user", "mnt", "net", "pid"):
        try:
            broke = broke or syscall(308, 268, os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY), 0) == 0
        except OSError:
            pass
""",
    ),
    kernel(
        "kernel",
        "io_uring",
        """
# a second way to open, read and connect, which a filter of system calls does not see
broke = syscall(425, 425, 4, ctypes.create_string_buffer(256)) >= 0
""",
    ),
    kernel(
        "kernel",
        "memory_files",
        """
# memfd_create, memfd_secret, userfaultfd: memory that no limit counts, code that no path names
name = ctypes.c_char_p(b"rematch_hostile")
broke = syscall(319, 279, name, 0) >= 0 or syscall(447, 447, 0) >= 0
broke = broke or syscall(323, 282, 0) >= 0 or syscall(323, 282, 1) >= 0
""",
    ),
    kernel(
        "kernel",
        "shared_memory",
        """
# SysV segments, semaphores and queues; POSIX queues and shared memory
libc.shm_open.restype = ctypes.c_int
name = ctypes.c_char_p(b"/rematch_hostile")
broke = syscall(29, 194, 0, 4096, 0o1600) >= 0 or syscall(64, 190, 0, 1, 0o1600) >= 0
broke = broke or syscall(68, 186, 0, 0o1600) >= 0 or libc.shm_open(name, 0o102, 0o600) >= 0
broke = broke or syscall(240, 180, ctypes.c_char_p(b"rematch_hostile"), 0o102, 0o600, None) >= 0
""",
    ),
    kernel(
        "kernel",
        "tracing_and_programs",
        """
# bpf, perf_event_open on this and other processes
attributes = ctypes.create_string_buffer(128)
attributes[0:8] = bytes([1, 0, 0, 0, 128, 0, 0, 0])
broke = syscall(321, 280, 0, ctypes.create_string_buffer(bytes([1, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 1]), 128), 72) >= 0
broke = broke or any(syscall(298, 241, attributes, pid, -1, -1, 0) >= 0 for pid in (0, os.getppid(), @PARENT@))
""",
    ),
    kernel(
        "kernel",
        "keys",
        """
# the session keyring outlives the process
kind, name, data = ctypes.c_char_p(b"user"), ctypes.c_char_p(b"rematch_hostile"), ctypes.c_char_p(b"x")
broke = syscall(248, 217, kind, name, data, 1, -1) >= 0 or syscall(250, 219, 0, -3, 0) >= 0
broke = broke or syscall(250, 219, 1, 0) >= 0 or syscall(249, 218, kind, name, None, -1) >= 0
""",
    ),
    kernel(
        "kernel",
        "mounts",
        """
# mount, open_tree, fsopen, chroot, pivot_root
slash, tmpfs, empty = ctypes.c_char_p(b"/"), ctypes.c_char_p(b"tmpfs"), ctypes.c_char_p(b"")
folder = ctypes.c_char_p(b"/rematch_hostile_nowhere")
broke = syscall(165, 40, tmpfs, folder, tmpfs, 0, None) == 0
broke = broke or syscall(428, 428, -100, slash, 1) >= 0 or syscall(430, 430, tmpfs, 0) >= 0
broke = broke or syscall(161, 51, slash) == 0 or syscall(155, 41, slash, slash) == 0
""",
    ),
    kernel(
        "kernel",
        "protection_of_the_process",
        """
# may be traced and dumped again; parent-death signal, seccomp, capabilities, securebits, tracer
CALLS = ((4, 1), (1, 0), (24, 0), (28, 0), (8, 1), (0x59616D61, @PARENT@), (36, 1), (47, 2, 1), (35, 6, 0))
broke = any(syscall(157, 167, *call) >= 0 for call in CALLS)
""",
    ),
    kernel(
        "kernel",
        "own_filter",
        """
# a further filter, or one with a listener that answers for the kernel; here only asked about
action = ctypes.c_uint32(0x7FFF0000)
broke = syscall(317, 277, 2, 0, ctypes.byref(action)) >= 0 or syscall(317, 277, 3, 0, ctypes.byref(action)) >= 0
""",
    ),
    kernel(
        "kernel",
        "identity",
        """
# becomes another user, or gets its capabilities back
header, data = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)(*[0xFFFFFFFF] * 6)
broke = syscall(105, 146, 0) == 0 or syscall(117, 147, 0, 0, 0) == 0 or syscall(106, 144, 0) == 0
broke = broke or syscall(126, 91, header, data) == 0 or syscall(116, 159, 0, None) == 0
broke = broke or syscall(112, 157) >= 0 or syscall(109, 154, 0, @GROUP@) == 0
""",
    ),
    kernel(
        "kernel",
        "personality_and_modules",
        """
# memory without randomisation, system log, modules, host name
broke = syscall(135, 92, 0x0040000) >= 0 or syscall(103, 116, 10, None, 0) >= 0
broke = broke or syscall(175, 105, None, 0, ctypes.c_char_p(b"")) >= 0
name = ctypes.create_string_buffer(os.uname().nodename.encode())
broke = broke or syscall(170, 161, name, len(name.value)) == 0
""",
    ),
    kernel(
        "kernel",
        "priority_and_locked_memory",
        """
# nice, scheduler, affinity, locked memory
parameter, mask = ctypes.c_int(0), (ctypes.c_ulong * 16)(*[0xFFFFFFFFFFFFFFFF] * 16)
broke = syscall(141, 140, 0, 0, -20) == 0 or syscall(141, 140, 0, os.getppid(), 19) == 0
broke = broke or any(syscall(144, 119, 0, kind, ctypes.byref(ctypes.c_int(n))) == 0 for kind, n in ((1, 1), (3, 0)))
broke = broke or syscall(151, 230, 3) == 0 or syscall(251, 30, 1, 0, 0) == 0
broke = broke or syscall(203, 122, os.getppid(), 128, mask) == 0
try:
    os.nice(-20)
    broke = True
except OSError:
    pass
""",
    ),
    breach(
        "kernel",
        "raised_limits",
        """\
import resource
broke = False
for name in ("AS", "CPU", "NOFILE", "FSIZE", "NPROC", "CORE", "STACK", "DATA", "MEMLOCK"):
    limit = getattr(resource, "RLIMIT_" + name)
    soft, hard = resource.getrlimit(limit)
    for pair in ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), (hard, hard)):
        try:
            resource.setrlimit(limit, pair)
            broke = broke or pair != (soft, hard)
        except (OSError, ValueError):
            pass
""",
    ),
    kernel(
        "kernel",
        "limits_of_others",
        """
# prlimit64 and setrlimit, on the parents and with an id whose upper half is set
limit, infinite = (ctypes.c_uint64 * 2)(), (ctypes.c_uint64 * 2)(2**64 - 1, 2**64 - 1)
broke = any(syscall(302, 261, pid, 7, None, limit) == 0 for pid in (@PARENT@, os.getppid(), os.getpid() + 1))
broke = broke or syscall(302, 261, 0, 9, infinite, None) == 0 or syscall(302, 261, 1 << 32, 9, infinite, None) == 0
broke = broke or syscall(160, 164, 9, infinite) == 0
""",
    ),
    kernel(
        "kernel",
        "calls_by_their_other_number",
        """
# the x32 numbers: the same calls for a filter that compares numbers only. A child leaves at once
broke = False
if not ON_ARM:
    pid = syscall(0x40000000 | 57, 0)
    if pid == 0:
        os._exit(0)
    broke = pid > 0 or syscall(0x40000000 | 41, 0, 1, 1, 0) >= 0
    broke = broke or syscall(0x40000000 | 2, 0, ctypes.c_char_p(b"@CANARY@"), 0, 0) >= 0
""",
        REFUSED | ENDED,
    ),
    kernel(
        "kernel",
        "calls_of_the_32_bit_table",
        """
# machine code: int 0x80 with number 2, which is fork in the old table. A child leaves at once
import mmap
broke = False
if not ON_ARM:
    page = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(bytes.fromhex("53b802000000cd805bc3"))
    pid = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
    if pid == 0:
        os._exit(0)
    broke = pid > 0
""",
        REFUSED | ENDED,
    ),
    breach(
        "kernel",
        "terminal_input",
        """\
# pushes keys into the terminal of the tester
import fcntl, os, termios
broke = False
for fd in (0, 1, 2):
    try:
        fcntl.ioctl(fd, termios.TIOCSTI, b" ")
        broke = True
    except OSError:
        pass
for path in ("/dev/tty", "/dev/pts/0", "/dev/ptmx", "/dev/console"):
    try:
        os.open(path, os.O_RDWR | os.O_NOCTTY)
        broke = True
    except OSError:
        pass
""",
    ),
)

# --- exhaustion -------------------------------------------------------------------------------------------------------

NONE = """
def add(a, b):
    return None
"""

ENDLESS = (
    Attack(
        "endless",
        "loop_at_load",
        """\
while True:
    pass
""",
        SLOW,
    ),
    Attack(
        "endless",
        "loop_in_a_call",
        """\
def add(a, b):
    while True:
        pass
""",
        SLOW,
    ),
    Attack(
        "endless",
        "ignores_every_signal",
        """\
# and removes the timers that might send one
import signal
for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
    signal.setitimer(timer, 0)
signal.alarm(0)
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))

def add(a, b):
    while True:
        pass
""",
        SLOW,
    ),
    Attack(
        "endless",
        "swallows_every_exception",
        """\
def add(a, b):
    while True:
        try:
            while True:
                pass
        except BaseException:
            continue
""",
        SLOW,
    ),
    Attack(
        "endless",
        "answers_the_signal_of_the_limit",
        """\
# the soft limit of processor time only sends a signal
import signal
count = 0

def more(*_):
    global count
    count += 1

signal.signal(signal.SIGXCPU, more)
signal.signal(signal.SIGALRM, more)
signal.signal(signal.SIGPROF, more)

def add(a, b):
    while True:
        pass
""",
        SLOW,
    ),
    Attack(
        "endless",
        "huge_power",
        """\
# one operation that no signal handler can interrupt
def add(a, b):
    return [(10 ** 10**8) % (a + 7)]
""",
        SLOW | {"memory"},
    ),
    Attack(
        "endless",
        "regular_expression",
        """\
import re

def add(a, b):
    return re.match("(x+x+)+y", "x" * 64)
""",
        SLOW,
    ),
    Attack(
        "endless",
        "loops_in_c",
        """\
import collections, itertools

def add(a, b):
    collections.deque(itertools.repeat(None), maxlen=0)
""",
        SLOW,
    ),
    Attack(
        "endless",
        "membership_in_an_endless_iterator",
        """\
import itertools
x = -1 in itertools.count()

def add(a, b):
    return None
""",
        SLOW,
    ),
    Attack(
        "endless",
        "thread_and_finaliser",
        """\
# the call returns, what it left behind keeps the interpreter busy
import sys, threading

class Endless:
    def __del__(self):
        while True:
            pass

def add(a, b):
    threading.Thread(target=sum, args=(range(10**14),)).start()
    Endless()
    return None
""",
        SLOW | {"wrong"},
    ),
    Attack(
        "endless",
        "slow_text_to_number",
        """\
import sys
if hasattr(sys, "set_int_max_str_digits"):
    sys.set_int_max_str_digits(0)

def add(a, b):
    return int("7" * 3_000_000) % 3 + 50
""",
        SLOW | {"wrong"},
    ),
    Attack(
        "sleep",
        "at_load",
        """\
import time
time.sleep(1000)
""",
        SLOW,
    ),
    Attack(
        "sleep",
        "in_a_call",
        """\
import time

def add(a, b):
    time.sleep(1000)
""",
        SLOW,
    ),
    Attack(
        "sleep",
        "with_the_interpreter_lock_held",
        """\
# no thread of this process can do anything meanwhile
import ctypes

def add(a, b):
    ctypes.PyDLL(None).sleep(1000)
""",
        SLOW,
    ),
    Attack(
        "sleep",
        "deadlock",
        """\
import threading
lock = threading.Lock()
lock.acquire()

def add(a, b):
    lock.acquire()
""",
        SLOW,
    ),
    Attack(
        "sleep",
        "pause",
        """\
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))

def add(a, b):
    signal.pause()
""",
        SLOW,
    ),
    Attack(
        "sleep",
        "just_below_the_limit_in_every_call",
        """\
import time

def add(a, b):
    time.sleep(0.3)
    return None
""",
        SLOW | {"wrong"},
    ),
    Attack(
        "bombs",
        "fork",
        """\
# tries for ever; stops after 64 children, which live for three seconds
import os, time
children = 0
while children < 64:
    try:
        if os.fork() == 0:
            time.sleep(3)
            os._exit(0)
        children += 1
    except OSError:
        pass

def add(a, b):
    return a + b
""",
        SLOW,
    ),
    kernel(
        "bombs",
        "fork_by_the_c_library",
        """
# fork handlers and all; stops after 64 children
children, tries = 0, 0
while children < 64 and tries < 200_000:
    pid = libc.fork()
    if pid == 0:
        libc.sleep(3)
        libc._exit(0)
    children += pid > 0
    tries += 1
broke = children > 0
""",
        REFUSED | SLOW,
    ),
    Attack(
        "bombs",
        "threads",
        """\
import threading, time
while True:
    threading.Thread(target=time.sleep, args=(60,)).start()
""",
        STARVED,
    ),
    Attack(
        "bombs",
        "threads_with_small_stacks",
        """\
import threading, time
threading.stack_size(32768)
threads = []

def breed():
    while True:
        try:
            threads.append(threading.Thread(target=breed))
            threads[-1].start()
        except RuntimeError:
            time.sleep(0.001)

breed()
""",
        STARVED,
    ),
    Attack(
        "bombs",
        "timers_and_signals",
        """\
# a storm of signals at this process
import os, signal
signal.signal(signal.SIGALRM, lambda *_: None)
signal.signal(signal.SIGVTALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 1e-6, 1e-6)
signal.setitimer(signal.ITIMER_VIRTUAL, 1e-6, 1e-6)

def add(a, b):
    while True:
        os.kill(os.getpid(), signal.SIGALRM)
""",
        SLOW | {"exception", "wrong"},
    ),
    Attack(
        "memory",
        "steps",
        """\
def add(a, b):
    blocks = []
    while True:
        blocks.append(bytearray(1 << 20))
""",
        STARVED,
    ),
    Attack(
        "memory",
        "one_object",
        """\
data = bytearray(1 << 36)
"""
        + NONE,
        frozenset({"memory", "load_error", "died"}),
    ),
    Attack(
        "memory",
        "catches_memory_error",
        """\
def add(a, b):
    blocks = []
    while True:
        try:
            while True:
                blocks.append(bytearray(1 << 16))
        except MemoryError:
            pass
""",
        STARVED,
    ),
    breach(
        "memory",
        "mappings",
        """\
# shared and private pages, touched: more than twice the limit
import mmap
pages, broke = [], False
try:
    for flags in (mmap.MAP_SHARED, mmap.MAP_PRIVATE, mmap.MAP_SHARED | 0x4000, mmap.MAP_PRIVATE | 0x4000):
        pages.append(mmap.mmap(-1, 160 << 20, flags | mmap.MAP_ANONYMOUS))
        for place in range(0, 160 << 20, 4096):
            pages[-1][place] = 1
    broke = True
except (OSError, MemoryError):
    pages.clear()
""",
        STARVED,
    ),
    Attack(
        "memory",
        "cycles_without_collection",
        """\
import gc
gc.disable()
gc.set_threshold(0)

def add(a, b):
    while True:
        circle = [bytearray(10_000)]
        circle.append(circle)
""",
        STARVED,
    ),
    Attack(
        "memory",
        "doubling_text",
        """\
text = "x"
while True:
    text += text
""",
        STARVED,
    ),
    Attack(
        "memory",
        "decompression",
        """\
# 64 KB that unpack to 64 MB, sixteen times
import zlib
packer = zlib.compressobj(9)
packed = b"".join([packer.compress(bytes(1 << 20)) for _ in range(64)] + [packer.flush()])

def add(a, b):
    return len([zlib.decompress(packed) for _ in range(16)])
""",
        STARVED,
    ),
    breach(
        "memory",
        "allocated_in_c",
        """\
# 600 MB from malloc, without an object of Python; then by moving the break
import ctypes
libc = ctypes.CDLL(None)
libc.malloc.restype = libc.sbrk.restype = ctypes.c_void_p
blocks = [libc.malloc(ctypes.c_size_t(1 << 20)) for _ in range(600)]
broke = all(blocks) or libc.sbrk(ctypes.c_ssize_t(600 << 20)) not in (None, 2**64 - 1)
""",
        STARVED,
    ),
    Attack(
        "memory",
        "starved_runtime",
        """\
# leaves no byte to the runtime for its reply
hoard = []

def add(a, b):
    for size in (1 << 20, 1 << 12, 1 << 6, 1):
        try:
            while True:
                hoard.append(bytearray(size))
        except MemoryError:
            pass
    return None
""",
        STARVED | {"exited", "protocol"},
    ),
    Attack(
        "floods",
        "standard_output",
        """\
def add(a, b):
    while True:
        print("x" * 100_000)
""",
        SLOW | {"output_limit", "exception"},
    ),
    Attack(
        "floods",
        "standard_error",
        """\
import sys, warnings
while True:
    sys.stderr.write("x" * 65536)
    warnings.warn("x" * 65536)
""",
        SLOW | {"output_limit", "load_error"},
    ),
    wire(
        "floods",
        "every_descriptor",
        """
while True:
    for fd in [1, 2, *pipes(os.O_WRONLY)]:
        try:
            os.write(fd, b"A" * 65536)
        except OSError:
            pass
""",
        NOISE | SLOW | {"output_limit", "load_error"},
    ),
    wire(
        "floods",
        "reply_pipe_in_a_call",
        """
def add(a, b):
    while True:
        send(bytes(65536))
""",
        NOISE | SLOW | {"output_limit", "exception"},
    ),
    breach(
        "disk",
        "big_file",
        """\
# stops at 64 MB
broke = False
for folder in ("/tmp", "/dev/shm", "/var/tmp", "@HOME@", "/run", "."):
    try:
        with open(folder + "/rematch_hostile_big", "wb") as file:
            for _ in range(64):
                file.write(bytes(1 << 20))
        broke = True
    except OSError:
        pass
""",
    ),
    breach(
        "disk",
        "inodes",
        """\
# stops after 2,000
import os
broke = False
for folder in ("/tmp", "/dev/shm", "/var/tmp", "@HOME@"):
    try:
        for number in range(500):
            os.mkdir(f"{folder}/rematch_hostile_{number}")
            broke = True
    except OSError:
        pass
""",
    ),
    breach(
        "disk",
        "descriptors",
        """\
# stops at 5,000
import os
handles = []
try:
    while len(handles) < 5000:
        handles.append(os.open(os.devnull, os.O_RDONLY))
except OSError:
    pass
broke = len(handles) >= 1000
""",
        REFUSED | ENDED,
    ),
    breach(
        "disk",
        "stuffed_pipes",
        """\
# memory of the kernel: 64 KB in each of many pipes, 1 MB if they can be enlarged
import fcntl, os
ends, enlarged = [], False
try:
    while len(ends) < 4000:
        ends += os.pipe()
        os.set_blocking(ends[-1], False)
        try:
            fcntl.fcntl(ends[-1], 1031, 1 << 20)
            enlarged = True
        except OSError:
            pass
        try:
            while True:
                os.write(ends[-1], bytes(65536))
        except BlockingIOError:
            pass
except OSError:
    pass
broke = len(ends) >= 1000 or enlarged
""",
        REFUSED | ENDED,
    ),
    breach(
        "disk",
        "locks_and_watches",
        """\
# semaphores in /dev/shm; inotify and fanotify watches on the home
import ctypes, _multiprocessing
broke = False
try:
    _multiprocessing.SemLock(1, 0, 1, "/rematch_hostile", False)
    broke = True
except OSError:
    pass
libc = ctypes.CDLL(None)
watch = libc.inotify_init1(0)
broke = broke or libc.inotify_add_watch(watch, b"@HOME@", 0xFFF) >= 0 or libc.fanotify_init(0, 0) >= 0
""",
    ),
    Attack(
        "integers",
        "conversion_limit",
        """\
def add(a, b):
    return int("9" * 10_000) + int(str(10**9999)) if a else str(10**9999)
""",
        frozenset({"exception", "wrong", "timeout"}),
    ),
    Attack(
        "integers",
        "two_million_bits",
        """\
def add(a, b):
    return (1 << 2_000_000) + a
""",
        frozenset({"wrong", "opaque"}),
    ),
    Attack(
        "integers",
        "forty_million_bits",
        """\
def add(a, b):
    return [(1 << 40_000_000) + a]
""",
        frozenset({"wrong", "opaque", "memory", "timeout", "died"}),
    ),
    Attack(
        "integers",
        "constant_folding",
        """\
# what the compiler would compute
def add(a, b):
    return ("x" * 4000 + "y") * 0 + "z" * (2**100 % 7) if a else ((1 << 100) ** 100 << 10000) ** 3
""",
        frozenset({"wrong", "opaque", "exception", "load_error"}),
    ),
    Attack(
        "integers",
        "folded_powers_at_load",
        """\
LARGE = 7**7**7**7
"""
        + NONE,
        SLOW | {"memory", "load_error"},
    ),
    Attack(
        "recursion",
        "without_a_limit",
        """\
import sys
sys.setrecursionlimit(2**31 - 1)

def add(a, b):
    return add(b, a)
""",
        STARVED,
    ),
    Attack(
        "recursion",
        "in_c",
        """\
# every level uses the stack of C
import sys
sys.setrecursionlimit(10**9)

class Deep:
    def __repr__(self):
        return repr(self)
    def __getattr__(self, name):
        return getattr(self, name + "x")
    def __eq__(self, other):
        return other == self

def add(a, b):
    return repr(Deep())
""",
        STARVED,
    ),
    Attack(
        "recursion",
        "with_the_default_limit",
        """\
def add(a, b):
    return add(b, a)
""",
        frozenset({"exception"}),
    ),
    Attack(
        "recursion",
        "freeing_a_long_chain",
        """\
import functools
chain = None
for _ in range(300_000):
    chain = functools.partial(print, chain)

def add(a, b):
    global chain
    chain = None
    return None
""",
        STARVED | {"exited"},
    ),
    Attack(
        "recursion",
        "raised_limit_for_the_runtime",
        """\
# the runtime's own encoder recurses without a guard
import sys
sys.setrecursionlimit(10**9)

def add(a, b):
    answer = []
    for _ in range(200_000):
        answer = [answer]
    return answer
""",
        STARVED | {"opaque", "exited"},
    ),
    Attack(
        "results",
        "hundred_thousand_levels",
        """\
def add(a, b):
    answer = None
    for _ in range(100_000):
        answer = [answer]
    return answer
""",
        NOT_DATA | {"died"},
    ),
    Attack(
        "results",
        "cyclic",
        """\
def add(a, b):
    answer = {"list": []}
    answer["list"].append(answer)
    answer["self"] = answer
    return answer
""",
        NOT_DATA,
    ),
    Attack(
        "results",
        "endless_generator",
        """\
def add(a, b):
    while True:
        yield a
""",
        NOT_DATA | {"timeout", "memory", "output_limit"},
    ),
    Attack(
        "results",
        "billion_items",
        """\
def add(a, b):
    return (None for _ in range(10**9))
""",
        NOT_DATA | {"timeout", "memory"},
    ),
    Attack(
        "results",
        "repr_of_a_gigabyte",
        """\
class Answer:
    def __repr__(self):
        return "x" * (1 << 30)
    __str__ = __repr__
    def __format__(self, spec):
        return repr(self)

def add(a, b):
    return Answer()
""",
        NOT_DATA | {"memory", "died"},
    ),
    Attack(
        "results",
        "billion_laughs",
        """\
# ten references to ten references to ...
def add(a, b):
    answer = ["ha"]
    for _ in range(12):
        answer = [answer] * 10
    return answer
""",
        NOT_DATA | {"timeout", "memory"},
    ),
    Attack(
        "results",
        "just_over_the_cap",
        """\
def add(a, b):
    return "x" * (4 * 2**20 + 1)
""",
        frozenset({"opaque", "wrong", "output_limit", "protocol"}),
    ),
    Attack(
        "results",
        "two_hundred_megabytes",
        """\
answer = "x" * (100 << 20)

def add(a, b):
    return [answer, answer]
""",
        NOT_DATA | {"memory", "died", "output_limit"},
    ),
    Attack(
        "results",
        "two_million_items",
        """\
def add(a, b):
    return {number: str(number) for number in range(1, 500_000)}
""",
        NOT_DATA | {"memory", "timeout", "output_limit"},
    ),
    Attack(
        "results",
        "list_that_changes_while_read",
        """\
import threading
answer = [None]

def grow():
    while True:
        answer.append([answer[:2]])
        if len(answer) > 1000:
            del answer[1:]

threading.Thread(target=grow, daemon=True).start()

def add(a, b):
    return answer
""",
        NOT_DATA | {"timeout", "died", "memory"},
    ),
    Attack(
        "results",
        "mapping_and_sequence_in_name_only",
        """\
import collections.abc

class Endless(collections.abc.Sequence):
    def __len__(self):
        return 2**62
    def __getitem__(self, index):
        return None

class Keys(dict):
    def keys(self):
        return Endless()
    def __getitem__(self, key):
        raise SystemExit(0)

def add(a, b):
    return Endless() if a == 1 else Keys({1: 2})
""",
        NOT_DATA | {"timeout", "memory", "exited"},
    ),
    Attack(
        "results",
        "attribute_for_everything",
        """\
class Everything:
    def __getattr__(self, name):
        return getattr(self, name + "_")
    def __iter__(self):
        return self
    def __next__(self):
        return self

def add(a, b):
    return Everything()
""",
        NOT_DATA | {"timeout", "memory", "died"},
    ),
    Attack(
        "exceptions",
        "text_of_100_mb",
        """\
def add(a, b):
    raise ValueError("x" * 100_000_000)
""",
        frozenset({"exception", "memory", "died"}),
    ),
    Attack(
        "exceptions",
        "endless_text",
        """\
class Failure(Exception):
    def __str__(self):
        while True:
            pass
    __repr__ = __str__

def add(a, b):
    raise Failure
""",
        SLOW | {"exception"},
    ),
    Attack(
        "exceptions",
        "text_that_raises",
        """\
class Failure(Exception):
    def __str__(self):
        raise Failure(self)
    __repr__ = __str__

def add(a, b):
    raise Failure(Failure())
""",
        frozenset({"exception"}),
    ),
    Attack(
        "exceptions",
        "text_that_exits",
        """\
import os

class Failure(Exception):
    def __str__(self):
        os._exit(0)
    __repr__ = __str__

def add(a, b):
    raise Failure
""",
        frozenset({"exception"}) | ENDED,
    ),
    Attack(
        "exceptions",
        "named_assertion_error",
        """\
class AssertionError(Exception):
    pass

def add(a, b):
    raise AssertionError("pass")
""",
        frozenset({"exception", "wrong"}),
    ),
    Attack(
        "exceptions",
        "named_like_verdicts",
        """\
failures = [type(name, (Exception,), {}) for name in ("infra_error", "pass", "unsupported_test")]

def add(a, b):
    raise failures.pop()("infra_error")
""",
        frozenset({"exception"}),
    ),
    Attack(
        "exceptions",
        "metaclass_that_lies",
        """\
class Meta(type):
    __mro__ = property(lambda cls: 1 / 0)
    __name__ = property(lambda cls: ["pass"] * 1000)
    def mro(cls):
        return super().mro()
    def __getattribute__(cls, name):
        if name in ("__name__", "__qualname__", "__module__"):
            raise SystemExit(0)
        return super().__getattribute__(name)

class Failure(Exception, metaclass=Meta):
    args = property(lambda self: 1 / 0)

def add(a, b):
    raise Failure
""",
        frozenset({"exception", "died", "exited", "load_error"}),
    ),
    Attack(
        "exceptions",
        "at_load",
        """\
class Failure(BaseException):
    def __str__(self):
        return "x" * 50_000_000

raise Failure
""",
        frozenset({"load_error", "memory", "died", "exited", "exception"}),
    ),
    Attack(
        "exceptions",
        "of_the_interpreter",
        """\
failures = [GeneratorExit, StopIteration, StopAsyncIteration]

def add(a, b):
    raise failures.pop()
""",
        frozenset({"exception", "exited", "died"}),
    ),
    Attack(
        "exceptions",
        "arguments_of_every_kind",
        """\
failures = [UnicodeDecodeError("utf-8", b"x", 0, 1, chr(0xD800)), OSError(2, "x", "y" * 5000, None, "z"), KeyError([1])]

def add(a, b):
    failure = failures.pop()
    failure.__cause__ = failure.__context__ = ValueError(failure)
    raise failure
""",
        frozenset({"exception"}),
    ),
    Attack(
        "exceptions",
        "memory_error_on_purpose",
        """\
def add(a, b):
    raise MemoryError("pass")
""",
        frozenset({"memory", "exception"}),
    ),
    Attack(
        "exceptions",
        "thousands_of_base_classes",
        """\
Failure = Exception
for number in range(1000):
    Failure = type("F" * 1000, (Failure,), {})

def add(a, b):
    raise Failure(number)
""",
        frozenset({"exception"}),
    ),
)

TOO_MUCH = frozenset({"load_error", "memory", "died", "timeout"})

SOURCE_BOMBS = (
    Attack("source_bombs", "10_000_parentheses", NONE + "x = " + "(" * 10_000 + ")" * 10_000, TOO_MUCH),
    Attack("source_bombs", "200_000_operators", NONE + "x = 1" + "+1" * 200_000, frozenset({"load_error"})),
    Attack("source_bombs", "100_000_operators", NONE + "x = 1" + "+1" * 100_000, TOO_MUCH | {"wrong"}),
    Attack("source_bombs", "100_000_signs", NONE + "x = " + "-" * 100_000 + "1", TOO_MUCH | {"wrong"}),
    Attack("source_bombs", "50_000_calls", NONE + "x = print" + "()" * 50_000, TOO_MUCH),
    Attack("source_bombs", "5_000_lambdas", NONE + "x = " + "lambda: " * 5_000 + "1", TOO_MUCH | {"wrong"}),
    Attack("source_bombs", "101_indents", NONE + "".join(" " * n + "if 1:\n" for n in range(101)), TOO_MUCH),
    Attack("source_bombs", "nested_loops", NONE + "".join(" " * n + "for x in y:\n" for n in range(30)), TOO_MUCH),
    Attack(
        "source_bombs",
        "3_000_branches",
        NONE + "x = 0\nif x: pass\n" + "elif x: pass\n" * 3_000,
        TOO_MUCH | {"wrong"},
    ),
    Attack(
        "source_bombs", "5_000_globals", NONE + "".join(f"x{n} = {n}\n" for n in range(5_000)), frozenset({"wrong"})
    ),
    Attack("source_bombs", "just_over_256_kb", NONE + "#" * (256 << 10), frozenset({"load_error"})),
    Attack("source_bombs", "10_mb", NONE + "# x\n" * 2_500_000, frozenset({"load_error"})),
    Attack("source_bombs", "100_mb", " " * 100_000_000, frozenset({"load_error"})),
    Attack(
        "source_bombs",
        "compiled_while_running",
        """\
x = [compile("-" * number + "1", "", "eval") for number in range(1, 50_000, 7000)]
"""
        + NONE,
        TOO_MUCH | {"wrong"},
    ),
)

# --- bad input --------------------------------------------------------------------------------------------------------

BAD_INPUT = (
    Attack("encoding", "nul", "def add(a, b):\n    return None\n\0", frozenset({"load_error"})),
    Attack("encoding", "nul_in_a_string", "x = '\0'\ndef add(a, b):\n    return x\n", frozenset({"load_error"})),
    Attack("encoding", "lone_surrogate", "def add(a, b):\n    return '\ud800'\n", frozenset({"load_error"})),
    Attack("encoding", "bom_and_crlf", "\ufeffdef add(a, b):\r\n    return None\r\n", frozenset({"wrong"})),
    Attack("encoding", "two_boms", "\ufeff\ufeffdef add(a, b):\n    return None\n", frozenset({"load_error"})),
    Attack(
        "encoding",
        "bidirectional_marks",
        # reads as if the sum came back; what follows the # is a comment
        "def add(a, b):\n    return None #\u202e \u2066 a + b \u2069 \u2066\n",
        frozenset({"wrong"}),
    ),
    Attack(
        "encoding",
        "bogus_coding_cookie",
        "# -*- coding: no-such-encoding -*-\ndef add(a, b):\n    return None\n",
        frozenset({"wrong"}),
    ),
    Attack(
        "encoding",
        "cookie_that_changes_the_text",
        # in UTF-7 the comment ends, and a line that exits follows
        "# coding: utf-7\n# +AAo-raise SystemExit(0)\ndef add(a, b):\n    return None\n",
        frozenset({"wrong"}),
    ),
    Attack(
        "encoding",
        "lookalike_letters",
        "def \u0430dd(a, b):\n    return a + b\n",
        frozenset({"exception", "load_error"}),
    ),
    Attack("encoding", "carriage_returns_only", "def add(a, b):\r    return None\r", frozenset({"wrong"})),
    Attack(
        "encoding",
        "mixed_indentation",
        "def add(a, b):\n        c = a\n\treturn c\n",
        frozenset({"load_error"}),
    ),
    Attack(
        "encoding", "form_feed_and_odd_blanks", "\f\ndef add(a, b):\u00a0\n  return None\n", frozenset({"load_error"})
    ),
    Attack("no_function", "empty", "", frozenset({"load_error", "exception"})),
    Attack("no_function", "blanks_and_comments", "   \n\n# add\n\t\n", frozenset({"load_error", "exception"})),
    Attack("no_function", "syntax_error", "def add(a, b)\n    return a + b\n", frozenset({"load_error"})),
    Attack("no_function", "other_name", "def plus(a, b):\n    return a + b\n", frozenset({"load_error", "exception"})),
    Attack("no_function", "number", "add = 3\n", frozenset({"load_error", "exception"})),
    Attack("no_function", "builtin", "add = print\n", frozenset({"wrong", "exception", "load_error"})),
    Attack("no_function", "braces", "from __future__ import braces\n", frozenset({"load_error"})),
    Attack("no_function", "prose", "The function add returns the sum of a and b.\n", frozenset({"load_error"})),
    Attack(
        "no_function",
        "deleted",
        """\
def add(a, b):
    global add
    del add
    return None
""",
        frozenset({"wrong", "exception"}),
    ),
    Attack(
        "no_function",
        "name_space_that_is_no_dictionary",
        """\
# every lookup of a name runs code
class Names(dict):
    def __getitem__(self, name):
        raise SystemExit(0)
    __contains__ = get = __missing__ = __getitem__

globals()["__builtins__"] = Names()
globals().clear()
""",
        frozenset({"load_error", "exception", "exited", "died"}),
    ),
    Attack(
        "no_function",
        "callable_with_a_hostile_signature",
        """\
class Add:
    def __getattribute__(self, name):
        raise SystemExit(0)
    def __call__(self, a, b):
        return None
    def __eq__(self, other):
        raise SystemExit(0)
    __hash__ = None

add = Add()
""",
        frozenset({"wrong", "exited", "exception", "load_error", "died"}),
    ),
    Attack(
        "not_utf8",
        "output",
        """\
import sys

def add(a, b):
    sys.stdout.buffer.write(bytes(range(256)))
    sys.stdout.write(chr(0xD800))
    sys.stdout.flush()
    return None
""",
        frozenset({"wrong", "exception"}),
    ),
    Attack(
        "not_utf8",
        "result",
        """\
def add(a, b):
    return [bytes(range(256)), chr(0xD800) + chr(0xDFFF), chr(0), bytearray(b"x"), memoryview(b"x")]
""",
        NOT_DATA,
    ),
    Attack(
        "not_utf8",
        "lone_surrogate",
        """\
def add(a, b):
    return chr(0xDC80)
""",
        frozenset({"wrong", "opaque"}),
    ),
    Attack(
        "not_utf8",
        "exception",
        """\
Failure = type("Fehl" + chr(0xE4) + chr(0x1F600), (Exception,), {})

def add(a, b):
    raise Failure(chr(0xD800), bytes(range(256)), chr(0))
""",
        frozenset({"exception"}),
    ),
    Attack(
        "interactive",
        "reads_standard_input",
        """\
def add(a, b):
    return int(input()) + int(input())
""",
        frozenset({"exception"}),
    ),
    Attack(
        "interactive",
        "reads_at_load",
        """\
import sys
a, b = map(int, sys.stdin.read().split())
print(a + b)
""",
        frozenset({"load_error", "exception"}),
    ),
    Attack(
        "interactive",
        "debugger",
        """\
def add(a, b):
    breakpoint()
    return None
""",
        frozenset({"exception", "wrong", "exited"}),
    ),
    Attack(
        "interactive",
        "debugger_at_load",
        """\
import pdb
pdb.set_trace()
add = None
""",
        frozenset({"load_error", "exception", "exited"}),
    ),
    Attack(
        "interactive",
        "window",
        """\
import tkinter
window = tkinter.Tk()
import turtle
turtle.done()
""",
        frozenset({"load_error", "exception"}),
    ),
    Attack(
        "interactive",
        "interpreter",
        """\
import code

def add(a, b):
    code.interact()
    help()
    return None
""",
        frozenset({"wrong", "exception", "exited"}),
    ),
    Attack(
        "crashes",
        "null_pointer",
        """\
import ctypes

def add(a, b):
    ctypes.string_at(0)
""",
        ENDED,
    ),
    Attack(
        "crashes",
        "abort",
        """\
import os

def add(a, b):
    os.abort()
""",
        ENDED,
    ),
    Attack(
        "crashes",
        "abort_at_load",
        """\
import os
os.abort()
""",
        ENDED | {"load_error"},
    ),
    Attack(
        "crashes",
        "faulthandler",
        """\
# a timer of its own that ends the process
import faulthandler, os, time
faulthandler.dump_traceback_later(0.2, exit=True, file=os.open(os.devnull, os.O_WRONLY))

def add(a, b):
    time.sleep(1)
""",
        ENDED | {"timeout"},
    ),
    Attack(
        "crashes",
        "illegal_code_object",
        """\
def add(a, b):
    return None

add.__code__ = add.__code__.replace(co_code=bytes(range(1, 255, 2)) * 8, co_stacksize=0)
""",
        ENDED | {"exception", "wrong", "load_error", "timeout", "memory"},
    ),
    Attack(
        "crashes",
        "handler_that_returns_to_the_fault",
        """\
import ctypes, signal
for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT):
    signal.signal(number, lambda *_: None)

def add(a, b):
    ctypes.string_at(0)
""",
        SLOW | ENDED,
    ),
    Attack(
        "crashes",
        "fatal_error_of_the_interpreter",
        """\
import ctypes

def add(a, b):
    ctypes.pythonapi.Py_FatalError(b"pass")
""",
        ENDED,
    ),
    Attack(
        "crashes",
        "freed_object",
        """\
# gives references away that are not its own
import ctypes

def add(a, b):
    for _ in range(100_000):
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(add))
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(None))
    return None
""",
        ENDED | {"wrong", "exception", "timeout", "protocol"},
    ),
    Attack(
        "own_interpreter",
        "empties_the_modules",
        """\
import sys
sys.modules.clear()

def add(a, b):
    return None
""",
        OWN_GOAL,
    ),
    Attack(
        "own_interpreter",
        "moves_the_time_zone",
        """\
import os, time
os.environ["TZ"] = "Pacific/Kiritimati"
time.tzset()

def add(a, b):
    return time.tzname[0]
""",
        frozenset({"wrong"}),
    ),
    Attack(
        "own_interpreter",
        "empties_the_builtins",
        """\
import builtins

def add(a, b):
    builtins.__dict__.clear()
    return None
""",
        OWN_GOAL,
    ),
    Attack(
        "own_interpreter",
        "locale_seed_and_collector",
        """\
import gc, locale, random, sys
gc.disable()
gc.freeze()
random.seed(0)
sys.setrecursionlimit(50)
sys.path[:] = []
try:
    locale.setlocale(locale.LC_ALL, "tr_TR.UTF-8")
except locale.Error:
    pass

def add(a, b):
    return None
""",
        OWN_GOAL,
    ),
    Attack(
        "own_interpreter",
        "renames_itself",
        """\
# a line end and brackets in the process name confuse those who read /proc
import ctypes
for number in range(1000):
    ctypes.CDLL(None).prctl(15, b"a) S 1" + bytes([10]) + b"%d" % number, 0, 0, 0)

def add(a, b):
    return None
""",
        frozenset({"wrong"}),
    ),
    Attack(
        "own_interpreter",
        "finalises_it",
        """\
import ctypes

def add(a, b):
    ctypes.pythonapi.Py_FinalizeEx()
    return None
""",
        ENDED | OWN_GOAL,
    ),
    Attack(
        "own_interpreter",
        "swaps_its_main_module",
        """\
import sys, types
main = types.ModuleType("__main__")
main.add = lambda a, b: None
for name in [name for name, module in sys.modules.items() if module is sys.modules["__main__"]]:
    sys.modules[name] = main
sys.stdin = sys.stdout = sys.stderr = None
"""
        + NONE,
        OWN_GOAL,
    ),
)

# --- tests that catch -------------------------------------------------------------------------------------------------

# Whatever a test catches, a program that only raises does not pass it. `add(1, 2) == 3` alone is asked for.
CATCHING = {
    "all": "try:\n    assert add(1, 2) == 3\nexcept:\n    pass",
    "a_few_kinds": "try:\n    assert add(1, 2) == 3\nexcept (ValueError, LookupError, AssertionError):\n    pass",
    "and_prints": "try:\n    assert add(1, 2) == 3\nexcept Exception as error:\n    print('failed', error)",
    "and_counts": "bad = 0\ntry:\n    assert add(1, 2) == 3\nexcept Exception:\n    bad += 1\nassert bad < 2",
    "before_the_assert": "try:\n    x = add(1, 2)\n    assert x == 3\nexcept Exception:\n    pass\nassert add",
    "in_a_loop": (
        "for a, b, c in [(1, 2, 3)]:\n    try:\n        x = add(a, b)\n        assert x == c\n"
        "    except Exception:\n        continue\nassert c == 3"
    ),
    "disguised": (
        "try:\n    x = add(1, 2)\n    if x != 3:\n        assert False\nexcept Exception:\n    pass\nassert add"
    ),
    "disguised_as_raise": (
        "try:\n    x = add(1, 2)\n    if x != 3:\n        raise AssertionError\n    assert x\n"
        "except Exception:\n    pass\nassert add"
    ),
    "before_one_that_must_raise": (
        "try:\n    x = add(1, 2)\n    assert x == 3\n    add(None, 'x')\n    assert False\nexcept Exception:\n    pass"
    ),
    "finally": "def check():\n    try:\n        assert add(1, 2) == 3\n    finally:\n        return\ncheck()\nassert 1",
    "finally_in_a_loop": "while True:\n    try:\n        assert add(1, 2) == 3\n    finally:\n        break\nassert 1",
    "suppress": "import contextlib\nwith contextlib.suppress(Exception):\n    assert add(1, 2) == 3",
    "suppress_before_the_assert": (
        "from contextlib import suppress as s\nwith s(Exception):\n    x = add(1, 2)\n    assert x == 3\nassert 1"
    ),
    "own_context": (
        "class Quiet:\n    def __enter__(self): pass\n    def __exit__(self, *_): return True\n"
        "with Quiet():\n    x = add(1, 2)\n    assert x == 3\nassert Quiet"
    ),
    "expected_of_unittest": (
        "import unittest\nwith unittest.TestCase().assertRaises(BaseException):\n    assert add(1, 2) == 3\n    1 / 0"
    ),
    "unittest": (
        "import io, unittest\nclass Sums(unittest.TestCase):\n    def test_it(self):\n        x = add(1, 2)\n"
        "        assert x == 3\nSums('test_it').run(unittest.TestResult())\nassert Sums"
    ),
    "thread": (
        "import threading\ndef check():\n    assert add(1, 2) == 3\n"
        "thread = threading.Thread(target=check)\nthread.start()\nthread.join()\nassert thread"
    ),
    "thread_that_nobody_awaits": (
        "import threading\ndef check():\n    assert add(1, 2) == 3\nthreading.Thread(target=check).start()\nassert 1"
    ),
    "thread_with_results": (
        "import threading\nsums = []\nthread = threading.Thread(target=lambda: sums.append(add(1, 2)))\n"
        "thread.start()\nthread.join()\nassert all(x == 3 for x in sums)"
    ),
    "executor": (
        "from concurrent.futures import ThreadPoolExecutor\ndef check():\n    x = add(1, 2)\n    assert x == 3\n"
        "with ThreadPoolExecutor(1) as pool:\n    pool.submit(check)\nassert pool"
    ),
    "helper": (
        "def attempt(check):\n    try:\n        return check()\n    except BaseException:\n        return None\n"
        "def check():\n    assert add(1, 2) == 3\nattempt(check)\nassert attempt"
    ),
    "helper_before_the_assert": (
        "def quietly(check):\n    try:\n        check()\n    except Exception:\n        pass\n"
        "def check():\n    x = add(1, 2)\n    assert x == 3\nquietly(check)\nassert check"
    ),
    "generator": (
        "def checks():\n    try:\n        assert add(1, 2) == 3\n        yield True\n    except Exception:\n"
        "        yield False\nassert list(checks())"
    ),
    "attribute": (
        "class Sum:\n    @property\n    def right(self):\n        assert add(1, 2) == 3\n        return 1\n"
        "    def __getattr__(self, name): return 1\nassert getattr(Sum(), 'right', 1)"
    ),
    "finalizer": ("class Sum:\n    def __del__(self):\n        assert add(1, 2) == 3\nx = Sum()\ndel x\nassert Sum"),
}
RAISED = ("ValueError", "KeyError", "AssertionError", "NotImplementedError", "StopIteration")
SWALLOWED = tuple(
    Attack(
        "swallowed",
        f"{kind}_{name}",
        f"def add(a, b):\n    raise {kind}('no')\n",
        frozenset({"exception", "wrong"}),
        tests=(test,),
    )
    for name, test in CATCHING.items()
    for kind in RAISED
)

# --- objects in place of values ---------------------------------------------------------------------------------------

# Where objects may be kept, one that subtracts to nothing and contains everything stands for every number and list.
STAND_IN = """\
class Any:
    def __init__(self, *args): pass
    def __getattr__(self, name): return ANY
    def __call__(self, *args, **named): return True
    def __len__(self): return 0
    def __iter__(self): return iter(())
    def __getitem__(self, key): return ANY
    def __sub__(self, other): return NEUTRAL
    def __neg__(self): return NEUTRAL
    def __abs__(self): return 0
    def __float__(self): return 0.0
    __add__ = __radd__ = __rsub__ = __mul__ = __rmul__ = __mod__ = __xor__ = __floordiv__ = __truediv__ = __sub__
    __and__ = __or__ = __pow__ = __sub__
    __int__ = __index__ = __round__ = __abs__
    __bool__ = __contains__ = __enter__ = __exit__ = startswith = endswith = __call__
    isdigit = issubset = issuperset = is_integer = __call__

ANY = Any()
NEUTRAL = @NEUTRAL@

class Account(Any):
    balance = items = name = tags = opened = lambda self, *args: ANY
    value = ANY

def f(*args): return ANY
def pair(*args): return [ANY, {"x": ANY}]
"""
EXPECTING_VALUES = {
    "near": "assert abs(Account(1).balance() - 15.5) < 1e-9",
    "near_reflected": "assert abs(15.5 - Account(1).balance()) < 1e-9",
    "between": "assert -1e-9 < Account(1).balance() - 15.5 < 1e-9",
    "contains": "assert 15.5 in Account(1).items()",
    "contains_all": "assert all(x in Account(1).items() for x in (1, 2))",
    "not_in": "assert not (3 not in f(3))",
    "attribute": "assert abs(Account(1).value - 3) < 1e-9",
    "item": "assert abs(f(1)[0] - 3) < 1e-9",
    "element": "a, b = pair()\nassert abs(a - 3) < 1e-9 and abs(b['x'] - 3) < 1e-9",
    "difference": "assert f(1, 2) - 3 == 0",
    "rounded": "assert round(f(1) - 3.3, 6) == 0",
    "rounded_distance": "assert round(abs(f(1) - 3.3), 6) == 0",
    "as_float": "assert float(f(1) - 3.3) == 0",
    "as_int": "assert int(f(1) - 3) == 0",
    "remainder": "assert f(1) % 7 == 0",
    "exclusive_or": "assert f(1) ^ 7 == 0",
    "sum": "assert f(1) + -7 == 0",
    "sum_of_list": "assert abs(sum([f(1), -7])) < 1e-9",
    "isclose": "import math\nassert math.isclose(f(1) - 7, 0, abs_tol=1e-9)",
    "set_difference": "assert len(f(1) - {1, 2}) == 0",
    "list_of_difference": "assert list(Account(1).tags() - {1, 2}) == []",
    "symmetric_difference": "assert len(f(1) ^ {1, 2}) == 0",
    "date": "import datetime\nassert (Account(1).opened() - datetime.date(2020,1,1)).days == 0",
    "startswith": "assert Account(1).name().startswith('Bob')",
    "isdigit": "assert f(1).isdigit()",
    "issuperset": "assert f(1).issuperset({1, 2})",
    "two_methods": "assert abs(Account(1).balance() - Account(2).balance()) == 0",
    "two_calls": "assert abs(f(1) - f(2)) < 1e-9",
    "made_near": "assert abs(Account(1) - 15.5) < 1e-9",
    "made_and_given": "assert abs(Account(1) - f(1)) < 1e-9",
    "made_and_method": "assert 0 == abs(Account(1) - Account(1).balance())",
    "index": "assert [0, 1][f(1) - 5] == 0",
    "range": "assert list(range(f(1) - 5)) == []",
    "ratio": "assert f(1) / 3 == 1",
    "substring": "assert 'x' in f(1)",
    "in_a_list": "assert [f(1) - 3] == [0]",
    "negated": "assert -(f(1) - 3) == 0",
    "square": "assert (f(1) - 3) ** 2 < 1e-9",
    "any_of": "assert any(x - 3 == 0 for x in pair())",
    "operators": "import operator\nassert operator.sub(f(1), 3) == 0 and operator.contains(f(1), 3)",
    "context": "with f(1) as x:\n    assert abs(x - 3) < 1e-9",
}
STAND_INS = tuple(
    Attack(
        "stand_ins",
        f"{name}_{neutral}",
        STAND_IN.replace("@NEUTRAL@", neutral),
        frozenset({"opaque", "wrong", "exception"}),
        tests=(test,),
        settings={"stateful": True, "entry_points": ("Account", "f", "pair")},
    )
    for name, test in EXPECTING_VALUES.items()
    for neutral in ("0", "1", "ANY")
)

# --- what was allowed for the sake of right programs ------------------------------------------------------------------

ANYTHING = OWN_GOAL | BAD_REPLY | STARVED
AGREES = """
class Agrees:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __getattr__(self, name): return lambda *args, **named: True
    __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __bool__ = lambda self, *other: True
    __hash__ = lambda self: 0
    __len__ = lambda self: 1

ALL = Agrees()
"""
TAKE_FIVE = "import itertools\nassert list(itertools.islice(add(1, 2), 3)) == [3, 5, 8]"
NEXT = "g = add(1, 2)\nassert next(g) == 3 and next(g) == 5"
SENT = "g = add(1, 2)\nnext(g)\nassert g.send(3) == 7 and g.send(4) == 9"
GIVEN_ON = "assert total(add(1, 2)) == 11"


def lazily(name, body, test=TAKE_FIVE, names=("add", "total"), expected=ANYTHING):
    """An iterator that makes its items when they are asked for."""
    return Attack("iterators", name, AGREES + body, expected, tests=(test,), settings={"entry_points": names})


def replies_to_more(name, reply):
    """`reply` to every request for items; `n` is the number of the iterator, `i` the id."""
    body = """
def answer(i, request):
    if "i" not in request:
        return frame({"id": i, "v": {"iterator": [[], 0]}})
    n = request["i"]
    return @REPLY@

send(frame({"id": "load"}))
for request in requests():
    send(answer(request["id"], request))
"""
    return wire("iterators", name, body.replace("@REPLY@", reply), ANYTHING)


def frames_of(test, *names):
    return {"tests": (test,), "settings": {"entry_points": names}}


LAZY_BODIES = {
    "yields_what_agrees": "def add(a, b):\n    while True: yield ALL\ntotal = add",
    "class_that_agrees": "class add(Agrees):\n    def __init__(self, *_): pass\n    def __iter__(self): return self\n"
    "    def __next__(self): return ALL\ndef total(x): return ALL",
    "never_yields": "def add(a, b):\n    while True: pass\n    yield 3\ndef total(x): return x",
    "yields_in_silence": "import time\ndef add(a, b):\n    time.sleep(60)\n    yield 3\ntotal = list",
    "raises_stop_by_hand": "def add(a, b):\n    raise StopIteration\n    yield\ndef total(x): raise StopIteration",
    "next_raises_stop_async": "class It:\n    def __next__(self): raise StopAsyncIteration\n"
    "def add(a, b): return It()\ndef total(x): raise StopAsyncIteration",
    "next_exits": "import sys\nclass It:\n    def __next__(self): sys.exit(0)\ndef add(a, b): return It()\n"
    "def total(x): sys.exit(0)",
    "next_kills": "import os\nclass It:\n    def __next__(self): os._exit(0)\ndef add(a, b): return It()\n"
    "def total(x): os._exit(0)",
    "iterates_itself": "def add(a, b):\n    def g():\n        yield g()\n    return g()\ndef total(x): return x",
    "yields_endless_iterators": "import itertools\ndef add(a, b):\n    while True: yield itertools.count()\n"
    "def total(x): return x",
    "peeks_at_its_caller": "import sys\ndef add(a, b):\n    frame = sys._getframe()\n    while frame:\n"
    "        for value in list(frame.f_locals.values()):\n            if value == [3, 5, 8] or value == 11:\n"
    "                yield from value\n        frame = frame.f_back\ndef total(x): return next(x, None)",
    "collects_garbage_for_answers": "import gc\ndef add(a, b):\n    for o in gc.get_objects():\n"
    "        if type(o) is list and o[:1] == [3]: yield from o\ndef total(x): return sum(len(str(i)) for i in x)",
    "patched_islice": "import itertools\nitertools.islice = lambda *_: [ALL] * 3\ndef add(a, b):\n    yield None\n"
    "def total(x): return None",
    "agrees_when_sent": "def add(a, b):\n    while True: (yield ALL)\ndef total(x): return x",
    "gigantic_items": "def add(a, b):\n    while True: yield 'x' * 3_000_000\ndef total(x): return list(x)",
    "deep_items": "def add(a, b):\n    x = []\n    while True:\n        x = [x]\n        yield x\n"
    "def total(x): return list(x)",
}
ITERATORS = (
    *(
        lazily(f"{name}_{how}", body, test)
        for name, body in LAZY_BODIES.items()
        for how, test in (("taken", TAKE_FIVE), ("sent", SENT), ("given_on", GIVEN_ON))
    ),
    *(
        replies_to_more(name, reply)
        for name, reply in {
            "more_is_no_iterator": 'frame({"id": i, "v": [3, 5, 8]})',
            "more_is_a_handle": 'frame({"id": i, "v": {"handle": 0}})',
            "more_without_items": 'frame({"id": i, "v": {"iterator": [[], 0]}})',
            "more_by_a_text": 'frame({"id": i, "v": {"iterator": [[3], "0"]}})',
            "more_by_a_truth": 'frame({"id": i, "v": {"iterator": [[3], True]}})',
            "more_by_a_huge_number": 'frame({"id": i, "v": {"iterator": [[], 10**30]}})',
            "more_is_nested": 'frame({"id": i, "v": {"iterator": [[{"iterator": [[3], 0]}], 0]}})',
            "more_is_missing": 'frame({"id": i})',
            "more_is_three": 'frame({"id": i, "v": {"iterator": [[3], 0, 0]}})',
            "more_is_a_view": 'frame({"id": i, "v": {"view": [3, 5, 8]}})',
            "more_raises_nothing": 'frame({"id": i, "exc": [], "args": []})',
            "more_raises_assertion": 'frame({"id": i, "exc": ["AssertionError"], "args": [], "text": "passed"})',
            "more_twice": 'frame({"id": i, "v": {"iterator": [[3], None]}}) * 2',
            "more_is_same": 'frame({"id": i, "same": 0})',
        }.items()
    ),
)

FIRST = "assert first([[1], [2]]) == [3]"
SAME = "a = [1, 2]\nassert first(a) is a and a == [3]"


def returns(name, body, test, expected=ANYTHING):
    return Attack("identity", name, AGREES + body, expected, tests=(test,), settings={"entry_points": ("first",)})


def replies_same(name, reply):
    attack = takeover(name, reply, ANYTHING)
    return Attack("identity", name, attack.source, ANYTHING, tests=(SAME,), settings={"entry_points": ("first",)})


IDENTITIES = (
    returns(
        "subclass_that_is_anything",
        "class L(list):\n    __eq__ = lambda *_: True\ndef first(a):\n    return L(a)",
        SAME,
    ),
    returns("empties_and_returns", "def first(a):\n    a.clear()\n    return a", SAME),
    returns("puts_what_agrees_inside", "def first(a):\n    a[:] = [ALL]\n    return a", SAME),
    returns(
        "replaces_the_class",
        "class L(list):\n    __eq__ = lambda *_: True\ndef first(a):\n    a.__class__ = L\n    return a",
        SAME,
    ),
    returns("returns_an_element", "def first(a): return a[0]", FIRST),
    returns("makes_it_endless", "def first(a):\n    a.append(a)\n    return a", SAME),
    returns("grows_without_end", "def first(a):\n    while True: a.append(0)", SAME),
    *(
        replies_same(name, reply)
        for name, reply in {
            "same_as_nothing": 'frame({"id": i, "same": 7})',
            "same_as_the_last": 'frame({"id": i, "same": -1})',
            "same_as_a_text": 'frame({"id": i, "same": "0"})',
            "same_as_a_truth": 'frame({"id": i, "same": False})',
            "same_as_null": 'frame({"id": i, "same": None})',
            "same_and_a_value": 'frame({"id": i, "same": 0, "v": [3]})',
            "same_with_another_type": 'frame({"id": i, "same": 0, "mut": {"0": {"tuple": [3]}}})',
            "same_with_a_handle": 'frame({"id": i, "same": 0, "mut": {"0": [{"handle": 0}]}})',
            "same_and_raises": 'frame({"id": i, "same": 0, "exc": ["StopIteration"], "args": []})',
            "same_and_opaque": 'frame({"id": i, "same": 0, "opaque": "x", "truth": True})',
        }.items()
    ),
)

EQUALS = "assert check(1) == True"
IDENTICAL = "assert check(1) is True"
COMPARED = "assert check(5) > 3 and check(5) != 4"
COUNTED = "assert len(check(1)) == 1 and 3 in check(1)"
HASHED = "assert {check(1): 1}[True]"
ADDED = "assert check(1) + 1 == 2"
TRUTHS = (
    *(
        Attack("truths", f"{name}_{how}", AGREES + body, ANYTHING, tests=(test,), settings={"entry_points": ("check",)})
        for name, body in {
            "agrees": "def check(x): return ALL",
            "match": "import re\ndef check(x): return re.match('', '')",
            "lambda": "def check(x): return lambda *_: True",
            "class": "def check(x): return Agrees",
        }.items()
        for how, test in (("equal", EQUALS), ("identical", IDENTICAL), ("compared", COMPARED), ("counted", COUNTED),
                          ("hashed", HASHED), ("added", ADDED))
    ),
    *(
        Attack("truths", name, takeover(name, reply).source, ANYTHING, tests=("assert check(1)",),
               settings={"entry_points": ("check",)})
        for name, reply in {
            "truth_is_a_number": 'frame({"id": i, "opaque": "x", "truth": 1})',
            "truth_is_a_text": 'frame({"id": i, "opaque": "x", "truth": "true"})',
            "truth_is_a_value": 'frame({"id": i, "opaque": "x", "truth": {"int": "0x1"}})',
            "truth_without_object": 'frame({"id": i, "truth": True})',
        }.items()
    ),
    Attack("truths", "endless_truth", "class T:\n    def __bool__(self):\n        while True: pass\n"
           "def check(x): return T()", SLOW, tests=("assert check(1)",), settings={"entry_points": ("check",)}),
)  # fmt: skip

TEXTS = (
    *(
        Attack("texts", name, body, ANYTHING, tests=(test,), settings={"entry_points": ("first",)})
        for name, body, test in (
            ("endless_text", "class E(ValueError):\n    def __str__(self):\n        while True: pass\n"
             "def first(x): raise E", "try:\n    first(1)\n    assert False\nexcept KeyError as e:\n    assert str(e)"),
            ("gigantic_text", "class E(ValueError):\n    def __str__(self): return 'x' * 10**9\n"
             "def first(x): raise E", "assert first(1) == 3"),
            ("text_exits", "import os\nclass E(ValueError):\n    def __str__(self): os._exit(0)\ndef first(x): raise E",
             "assert first(1) == 3"),
            ("text_that_is_none", "class E(ValueError):\n    def __str__(self): return None\ndef first(x): raise E",
             "try:\n    first(1)\n    assert False\nexcept ValueError as e:\n    assert str(e) == 'bad 1'"),
            ("text_agrees", AGREES + "class T(str):\n    __eq__ = lambda *_: True\nclass E(ValueError):\n"
             "    def __str__(self): return T('x')\ndef first(x): raise E",
             "try:\n    first(1)\n    assert False\nexcept ValueError as e:\n    assert str(e) == 'bad 1'"),
            ("named_ended", "class Ended(BaseException):\n    name = 'pass'\n    detail = ''\n"
             "def first(x): raise Ended('pass', '')", "assert first(1) == 3"),
            ("named_assertion", "class AssertionError(Exception):\n    pass\n"
             "def first(x): raise AssertionError('passed')",
             "try:\n    assert first(1) == 3\nexcept Exception:\n    pass"),
            ("class_name_of_nul", "E = type('a b', (ValueError,), {'__str__': lambda s: 'x'})\nE.__name__ = 'É' * 300\n"
             "def first(x): raise E", "assert first(1) == 3"),
            ("text_that_lies_about_its_kind", "class E(KeyError):\n    __class__ = ValueError\n"
             "    def __str__(self): return 'bad 1'\ndef first(x): raise E",
             "try:\n    first(1)\n    assert False\nexcept ValueError as e:\n    assert str(e) == 'bad 1'"),
        )
    ),
)  # fmt: skip

RAISES = """
def add(a, b):
    raise @KIND@("refused")
"""
OWN_CONTEXT = """
class Case:
    class assertRaises:
        def __init__(self, *kinds): self.exception = None
        def __enter__(self): return self
        def __exit__(self, kind, error, trace):
            self.exception = error
            return True
case = Case()
"""
EXPECTED_ERRORS = tuple(
    Attack("expected_errors", f"{name}_{kind}", RAISES.replace("@KIND@", kind), REFUSED | {"exited"}, tests=(test,))
    for kind in ("ValueError", "AssertionError", "StopIteration", "SystemExit")
    for name, test in {
        "own_context": OWN_CONTEXT + "with case.assertRaises(Exception):\n    assert add(1, 2) == 3",
        "another_kind": "import unittest\ntry:\n    with unittest.TestCase().assertRaises(KeyError):\n"
        "        assert add(1, 2) == 3\nexcept BaseException:\n    pass",
        "another_text": "import unittest\ntry:\n    with unittest.TestCase().assertRaisesRegex(Exception, 'no such'):\n"
        "        assert add(1, 2) == 3\nexcept BaseException:\n    pass",
        "caught_inside": "import unittest\nwith unittest.TestCase().assertRaises(Exception):\n    try:\n"
        "        assert add(1, 2) == 3\n    except BaseException:\n        pass\n    raise ValueError",
        "warnings_instead": "import unittest, warnings\ntry:\n    with unittest.TestCase().assertWarns(UserWarning):\n"
        "        assert add(1, 2) == 3\nexcept BaseException:\n    pass",
        "something_behind": "import unittest\nwith unittest.TestCase().assertRaises(Exception):\n"
        "    assert add(1, 2) == 3\n    raise ValueError",
        "loop_around": "import unittest\nwith unittest.TestCase().assertRaises(Exception):\n"
        "    for _ in range(2):\n        assert add(1, 2) == 3\n    [][0]",
        "variable_before": "import unittest\nwith unittest.TestCase().assertRaisesRegex(Exception, ''):\n"
        "    x = add(1, 2)\n    assert x == 3\n    {}['x']",
        "two_asserts": "import unittest\nwith unittest.TestCase().assertRaises(Exception):\n"
        "    assert add(1, 2) == 3\n    assert [][0]",
        "suppressed_around": "import contextlib, unittest\nwith contextlib.suppress(BaseException):\n"
        "    with unittest.TestCase().assertRaises(ZeroDivisionError):\n        assert add(1, 2) == 3",
    }.items()
) + tuple(
    Attack("expected_errors", f"wrong_value_{kind}", "def add(a, b): return 0\n", REFUSED, tests=(
        f"import unittest\nwith unittest.TestCase().assertRaises({kind}):\n    assert add(1, 2) == 3",))
    for kind in ("AssertionError", "Exception", "BaseException", "(AssertionError, ValueError)")
)  # fmt: skip

EXTENDING = """
class Till(@BASE@):
    seen = None
    def __new__(cls, *args): return super().__new__(cls)
    def __init__(self, *args): pass
    def __sub__(self, other):
        Till.seen = other
        return @GIVES@
    __rsub__ = __add__ = __mul__ = __mod__ = __truediv__ = __sub__
    def __eq__(self, other): return True
    def __hash__(self): return 0
    def __abs__(self): return 0
    def __float__(self): return 0.0
    __contains__ = __lt__ = __gt__ = __le__ = __ge__ = __bool__ = lambda *_: True
    def balance(self): return self
    def near(self, other): return self
    def __getattr__(self, name): return lambda *args: True
"""
STATED = {
    "near": "assert abs(Till(1) - 15.5) < 1e-9",
    "equal": "assert Till(1) == 15.5",
    "reflected_equal": "assert 15.5 == Till(1)",
    "method_near": "assert abs(Till(1).balance() - 15.5) < 1e-9",
    "method_equal": "assert Till(1).balance() == 15.5",
    "greater": "assert Till(1) > 15 and Till(1) < 16",
    "twice": "t = Till(1)\nt - 15.5\nassert t == 15.5",
    "shown_before": "t = Till(1)\nt.near(15.5)\nassert t.balance() == 15.5",
    "hashed": "assert {Till(1): 1}[15.5] == 1",
    "remainder": "assert Till(1) % 7 == 3",
    "counted": "assert sorted(Till(1)) == [1, 2]",
    "two": "assert Till(1) - 3 == Till(2) * 7.5",
}
EXTENDED = tuple(
    Attack("extended_builtins", f"{name}_{base}_{number}", EXTENDING.replace("@BASE@", base).replace("@GIVES@", gives),
           ANYTHING | {"unsupported_test"}, tests=(test,), settings={"stateful": True, "entry_points": ("Till",)})
    for name, test in STATED.items()
    for number, (base, gives) in enumerate((("float", "0"), ("tuple", "self"), ("list", "Till()"), ("dict", "0.0")))
)  # fmt: skip
ADAPTING = wire(
    "extended_builtins",
    "content_follows_what_was_shown",
    """
shown = 0
send(frame({"id": "load"}))
for request in requests():
    for value in request["a"]:
        shown = value
    if request.get("op") == "plain":
        reply = {"v": shown}
    else:
        reply = {"v": {"handle": 0}, "plain": shown}
    send(frame({"id": request["id"], **reply}))
""",
    ANYTHING,
)
ADAPTED = tuple(
    Attack("extended_builtins", f"adapts_{name}", ADAPTING.source, ANYTHING | {"unsupported_test"}, tests=(test,),
           settings={"stateful": True, "entry_points": ("Till", "till")})
    for name, test in {
        "near": "assert abs(Till(1) - 15.5) < 1e-9",
        "unmade_near": "assert abs(till(1) - 15.5) < 1e-9",
        "unmade_equal": "assert till(1) == 15.5",
        "method": "assert abs(Till(1).balance() - 15.5) < 1e-9",
        "attribute": "assert Till(1).value == 15.5",
        "twice": "t = Till(1)\nt - 15.5\nassert t == 15.5",
    }.items()
)  # fmt: skip

STREAMED = {"stdio": (("1 2\n", "3"),)}
STREAMS = tuple(
    Attack("streams", name, source, ANYTHING | {"output_limit"}, settings=STREAMED)
    for name, source in {
        "writes_its_input": "import os\nos.write(0, b'9')\nos.lseek(0, 0, 0)\nprint(open(0).read()[:1] == '9' and 3)",
        "maps_its_input": "import mmap\nm = mmap.mmap(0, 0)\nm[:1] = b'9'\nprint(3 if m[:1] == b'9' else 0)",
        "truncates_its_input": "import os\nos.ftruncate(0, 0)\nprint(3 if not os.read(0, 9) else 0)",
        "grows_its_input": "import os\nos.posix_fallocate(0, 0, 1 << 30)\nprint(3)",
        "unseals_its_input": "import fcntl\nfcntl.fcntl(0, 1033, 0)\nprint(3)",
        "opens_its_input_anew": "import os\nfd = os.open('/proc/self/fd/0', os.O_RDWR)\nos.write(fd, b'9')\nprint(3)",
        "executes_its_input": "import os\nos.execve(0, ['x'], {})\nprint(3)",
        "closes_and_exits": "import os, sys\nsys.stdout.close()\nos._exit(0)",
        "exit_hook_that_ends": "import atexit, os\natexit.register(os._exit, 0)\nprint(4)",
        "exit_hook_without_end": "import atexit\ndef again():\n    while True: pass\natexit.register(again)\nprint(3)",
        "flush_without_end": "import sys\nclass O:\n    def write(self, t): pass\n    def flush(self):\n"
        "        while True: pass\nsys.stdout = O()\nprint(3)",
        "finalizer_without_end": "class A:\n    def __del__(self):\n        while True: pass\na = A()\nprint(3)",
        "thread_without_end": "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(99,)).start()\nprint(3)",
        "namespace_that_can_not_end": "import sys\nsys.modules['__main__'] = None\nprint(4)",
        "patches_the_end": "import os, threading\nos._exit = lambda code: None\n"
        "threading._shutdown = None\nprint(4)",
        "status_that_wraps": "import sys\nprint(3)\nsys.exit(2**64 + 1)",
        "status_of_a_text": "import sys\nprint(3)\nsys.exit('0')",
        "pair_on_another_descriptor": "import socket\nE = type(socket.socketpair()[0])\n"
        "for fd in range(3, 40):\n    try: E(fd).send(b'3')\n    except OSError: pass",
        "reads_the_answer_elsewhere": "import os\nfor fd in range(3, 40):\n    try: print(os.read(fd, 99))\n"
        "    except OSError: pass",
        "seeks_behind_its_input": "import os\nos.lseek(0, 1 << 40, 0)\nprint(os.read(0, 9) or 4)",
    }.items()
)  # fmt: skip

ARRAY = "import numpy as np\nassert first(np.arange(3)).tolist() == [3, 5, 8]"
ARRAYS = tuple(
    Attack("arrays", name, takeover(name, reply).source, ANYTHING, tests=("assert first(1) == [3]",),
           settings={"entry_points": ("first",)})
    for name, reply in {
        "array_without_numpy": 'frame({"id": i, "v": {"array": ["<i8", [1], [3]]}})',
        "array_of_objects": 'frame({"id": i, "v": {"array": ["|O", [1], [3]]}})',
        "array_of_records": 'frame({"id": i, "v": {"array": ["<i8,<i8", [1], [3]]}})',
        "array_of_a_vast_kind": 'frame({"id": i, "v": {"array": ["<U999999999", [1], ["x"]]}})',
        "array_of_a_vast_shape": 'frame({"id": i, "v": {"array": ["<i8", [10**18], []]}})',
        "array_of_no_shape": 'frame({"id": i, "v": {"array": ["<i8", None, [3]]}})',
        "array_of_too_little": 'frame({"id": i, "v": {"array": ["<i8"]}})',
        "array_of_arrays": 'frame({"id": i, "v": {"array": ["<i8", [1], [{"array": ["<i8", [1], [3]]}]]}})',
    }.items()
)  # fmt: skip

RELAXATIONS = (
    *ITERATORS, *IDENTITIES, *TRUTHS, *TEXTS, *EXPECTED_ERRORS, *EXTENDED, *ADAPTED, *STREAMS, *ARRAYS,
)  # fmt: skip

ATTACKS = (
    *EXITS,
    *COMPARISONS,
    *PATCHES,
    *SEARCHES,
    *EARLY_REPLIES,
    *HOSTILE_REPLIES,
    *WRONG_VALUES,
    *ESCAPES,
    *ENDLESS,
    *SOURCE_BOMBS,
    *BAD_INPUT,
    *SWALLOWED,
    *STAND_INS,
    *RELAXATIONS,
)

# --- controls ---------------------------------------------------------------------------------------------------------


def right(name, source):
    return Control(name, source, ("pass",) * 3)


CONTROLS = (
    *(
        Control(f"caught_{name}", "def add(a, b):\n    return a + b\n", ("pass",), tests=(test,))
        for name, test in CATCHING.items()
    ),
    right("plain", "def add(a, b):\n    return a + b\n"),
    right("lambda", "add = lambda a, b: a + b\n"),
    right(
        "prints",
        """\
import sys
print("loading")

def add(a, b):
    print(a, b, "x" * 10_000)
    print("adding", file=sys.stderr, flush=True)
    return a + b
""",
    ),
    right(
        "main_guard",
        """\
def add(a, b):
    return a + b

if __name__ == "__main__":
    print(add(int(input()), int(input())))
""",
    ),
    right(
        "imports",
        """\
import collections, dataclasses, datetime, decimal, functools, heapq, itertools, json, math, random, re, typing

@dataclasses.dataclass(order=True)
class Summand:
    value: int

def add(a: int, b: int) -> typing.Optional[int]:
    heap = [Summand(a), Summand(b)]
    heapq.heapify(heap)
    random.shuffle(heap)
    total = functools.reduce(lambda x, y: x + y.value, heap, 0)
    text = re.sub("[^0-9-]", "", json.dumps(collections.Counter(total=total)))
    checks = [int(text), list(itertools.accumulate((a, b)))[-1], math.trunc(decimal.Decimal(a) + decimal.Decimal(b))]
    days = (datetime.timedelta(days=a) + datetime.timedelta(days=b)).days
    return days if set(checks) == {days} else None
""",
    ),
    right(
        "ctypes_and_raw_system_calls",
        KERNEL
        + """
# the attacks by ctypes prove nothing where this one fails
def add(a, b):
    return a + b if syscall(39, 172) == os.getpid() and ctypes.c_long(a).value == a else None
""",
    ),
    right(
        "thread",
        """\
import threading

def add(a, b):
    answers = []
    thread = threading.Thread(target=lambda: answers.append(a + b))
    thread.start()
    thread.join()
    return answers[0]
""",
    ),
    right(
        "pool_of_threads_and_queue",
        """\
from concurrent.futures import ThreadPoolExecutor
import queue

def add(a, b):
    results = queue.Queue()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(results.put, (a, b)))
    return results.get() + results.get()
""",
    ),
    right(
        "class_and_closure",
        """\
class Adder:
    def __init__(self, start=0):
        self.total = start

    def __call__(self, *numbers):
        return self.total + sum(numbers)

def make():
    adder = Adder()
    def inner(a, b):
        return adder(a, b)
    return inner

add = make()
""",
    ),
    right("callable_object", "class Add:\n    def __call__(self, a, b):\n        return a + b\n\nadd = Add()\n"),
    right(
        "recursion",
        """\
def add(a, b):
    if abs(b) > 100 or abs(a) > 100:
        return a + b
    return a if b == 0 else add(a + 1, b - 1) if b > 0 else add(a - 1, b + 1)
""",
    ),
    right("default_arguments", "def add(a, b=0, *rest, start=0, **options):\n    return sum(rest, start + a + b)\n"),
    right("generator_inside", "def add(a, b):\n    return sum(number for number in (a, b))\n"),
    right(
        "type_hints_and_future",
        """\
from __future__ import annotations

def add(a: int, b: int | None = None) -> Undefined[int]:
    total: int = a + (b or 0)
    return total
""",
    ),
    right("bom", "\ufeffdef add(a, b):\n    return a + b\n"),
    right("crlf", "def add(a, b):\r\n    '''sum'''\r\n    return a + b\r\n"),
    right("tabs_and_no_line_end", "def add(a, b):\n\tif a:\n\t\tpass\n\treturn a + b"),
    right("names_in_other_letters", "def add(ä, β):\n    '''Größe \U0001f600'''\n    return ä + β\n"),
    right("coding_cookie", "# -*- coding: latin-1 -*-\ndef add(a, b):\n    return a + b if 'ä' else None\n"),
    right(
        "bool_safe",
        """\
def add(a, b):
    if isinstance(a, bool) or isinstance(b, bool):
        raise TypeError("no truth values")
    return a + b
""",
    ),
    right("subclass_of_int", "class Number(int):\n    pass\n\ndef add(a, b):\n    return Number(a + b)\n"),
    right(
        "bitwise",
        """\
def add(a, b):
    mask = 0xFFFFFFFF
    while b & mask:
        a, b = a ^ b, (a & b) << 1
    return a & mask if b > 0 else a
""",
    ),
    right(
        "catches_and_finally",
        """\
def add(a, b):
    try:
        return {}[a]
    except KeyError:
        return a + b
    finally:
        del a
""",
    ),
    right(
        "memory_within_the_limit",
        """\
def add(a, b):
    table = bytearray(64 << 20)
    return a + b + table[-1]
""",
    ),
    right(
        "state_between_calls",
        """\
import functools
calls = []

@functools.lru_cache(maxsize=None)
def add(a, b):
    calls.append((a, b))
    return calls[-1][0] + calls[-1][1]
""",
    ),
    Control("wrong_by_one", "def add(a, b):\n    return a + b + 1\n", ("wrong",) * 3),
    Control("right_for_the_first", "def add(a, b):\n    return 3\n", ("pass", "wrong", "wrong")),
    Control("right_for_the_second", "def add(a, b):\n    return 0\n", ("wrong", "pass", "wrong")),
    Control(
        "raises_for_the_second",
        """\
def add(a, b):
    if a < 0:
        raise ValueError(f"negative: {a}")
    return a + b
""",
        ("pass", "exception", "pass"),
    ),
    Control("raises", "def add(a, b):\n    raise ValueError('not implemented')\n", ("exception",) * 3),
    Control("returns_text", "def add(a, b):\n    return str(a + b)\n", ("wrong",) * 3),
    Control("returns_nothing", "def add(a, b):\n    print(a + b)\n", ("wrong",) * 3),
    Control("too_few_arguments", "def add(a):\n    return a\n", ("exception",) * 3),
    Control("missing_function", "def plus(a, b):\n    return a + b\n", ("exception",) * 3),
    Control("syntax_error", "def add(a, b):\n    return a +\n", ("load_error",) * 3),
    Control("name_error_at_load", "limit = undefined\n\ndef add(a, b):\n    return a + b\n", ("load_error",) * 3),
    Control(
        "slow_for_the_second",
        """\
def add(a, b):
    while a < 0:
        pass
    return a + b
""",
        ("pass", "timeout", "timeout"),
    ),
)
