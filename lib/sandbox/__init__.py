"""Runs Python that a model wrote, and judges it by tests in a way that the program cannot forge.

    python -m lib.sandbox --self-test                          # what is covered on this machine, and how fast it is
    python -m lib.sandbox program.py --tests tests.py          # judge one program and explain the verdict
    python -m lib.sandbox program.py --stdin input.txt         # run one as a script and show what it printed

From Python, with no more of Rematch than this folder without `tasks`, and `lib/core/errors.py`:

    from lib.sandbox.pool import Sandbox
    from lib.sandbox.worker import Program

    with Sandbox() as sandbox:
        program = Program("def add(a, b):\n    return a + b", tests=("assert add(1, 2) == 3",), entry_points=("add",))
        [verdict] = sandbox.judge([program])
        print(verdict.passed, verdict.pass_rate, verdict.tests[0].verdict, verdict.rung)

Two jailed processes per program: one executes it and answers calls with plain data, the other executes the tests and
owns the verdict (`lib/sandbox/jail/__init__.py` has the protocol). The verdict on a test is one of:

    pass              it ran to its end, an assert held, and none failed or raised, whatever has caught that
    wrong             an assert failed, or none was reached
    exception         a call raised, or a script ended with a status that is not 0
    load_error        the source is refused, does not compile, or its top level raised
    exited            sys.exit
    died              the program ended in another way: a signal, os._exit, a crash
    timeout, memory, output_limit    a limit
    opaque            an object that is not plain data was compared
    protocol          the program sent bytes that nobody asked for, or that are no answer
    unsupported_test  the test's fault: it does not parse, asserts nothing, passes what cannot leave it
    infra_error       the sandbox's fault, after retries: no score at all, `ProgramVerdict.scored` is False

What protects the machine is one of several rungs. A sandbox takes the highest one on which a program tried everything
that must be refused, and was refused:

    R4   Landlock, seccomp and bubblewrap: as R3, and a file system, processes and a network of its own
    R3   Landlock and seccomp: no file but the standard library, no network, process, signal or tracing
    R2   seccomp: no file at all; Python's own library is imported from memory
    R1   limits: the verdict is made elsewhere still, but the machine is open to the program; needs `allow_unsafe`

What a right program cannot do here stands in a table of docs/programs.md: open files, sockets or processes, and return
objects of its own unless the tests say `stateful`; without that, an object has truth and nothing else. Numbers, text,
containers, dates and arrays of numbers arrive as they are, an iterator gives its items as they are asked for; a named
tuple, a Counter or another extension of a builtin arrives as that builtin. With `stateful`, objects are used by their
attributes and methods, and those of a class that the tests call by a capitalised name by operators and `in`, too:
elsewhere a value may be expected, for which no object may stand in. If such a class extends a builtin, its objects are
compared as that.

Covered nowhere: answers learned by heart, functions that answer differently each time, bugs of the kernel. R3 does not
hide names, sizes and times of files: a program can see there what another one has read before it. R4 does not hide the
names of packages that are installed beside the library; neither lets such a package be read.

The modules, in reading order:

jail/        what runs inside a sandbox, with the protocol; the standard library alone
worker       a program goes in, a verdict comes out: the outer end of one sandbox process
isolation    which rung of protection holds here, found by attempts
pool         many workers, and the verdicts that are known already
tasks        programming tasks as rows: schema, and checks for tests that prove nothing
"""
