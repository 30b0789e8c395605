"""Runs inside a sandbox, by the standard library alone and no more of it than it needs. The other modules are outside.

The parts, in reading order; each may refer back only:

wire        frames and plain data, all that crosses between processes
kernel      Landlock, seccomp, limits: what a process gives up
candidate   the untrusted process: runs the program, answers calls
asserts     tests, compiled so that nothing can catch what becomes of an assert
values      what stays with the program, as a test holds it
examiner    the trusted process: runs the tests, owns the verdict
zygote      forks both for each program, keeps the time, kills
probes      what a program must not be able to do, tried before it is trusted

**The protocol.** The owner, a thread of the trainer, executes a zygote: a bare interpreter with an empty environment
and one socket. For each program it sends one job with files, and the zygote forks two children into a jail:

    owner --- socket: job + files ---> zygote --- forks ---> candidate: executes the program
      |                                                        ^    |
      |                                                  calls |    | answers, plain data
      |                                                        |    v
      '--- file: the tests -----------------------------> examiner: executes the tests
      <--- pipe: one frame of verdicts --------------------'

A verdict is made where no byte of the program has run. The candidate never receives a test, an expected value or the
verdict pipe, only the arguments of one call at a time; nothing that it prints, and no way in which it ends, can pass a
test. Everything that comes from it is data to be refused: no pickle, no shared memory, no exit status.

Frames: 4 bytes of length, little endian, then a JSON object in ASCII.

    owner -> zygote        {"mode": "tests", "cpu": seconds, "memory": bytes, "seed": n, "stateful": bool} with the
                           program, the tests, pipes of calls, answers and the verdict; in mode "script" with the
                           program and the standard streams
    owner -> candidate     {"source": text}
    owner -> examiner      {"tests": [text], "entry_points": [name], "setup_code": text, "stateful": bool}
    candidate -> examiner  {"id": "load", "errors": {name: [class names of the MRO]}} once the program's top level has
                           run, or {"id": "load", "exc", "args"}
    examiner -> candidate  {"id": 16 hex digits, "f": name, "a": [value], "k": [names of the last of them]}, or of what
                           the candidate has {"id", "f" or "h": number of an object, "op": what, "m": name, "a", "k"},
                           with "made": whether what extends a builtin is to be kept as an object; or of an iterator
                           {"id", "i": number, "a": [] or [what is sent to a generator]}
    candidate -> examiner  {"id", "v": value}, with an object "plain": the builtin that it extends, or where tests are
                           not stateful "truth" and "called": whether it can be; {"id", "same": index of the argument
                           that it is}, {"id", "opaque": why, "truth"}, {"id", "method": true} or
                           {"id", "exc": [class names of the MRO], "args": [number or text], "text": its own, "has":
                           attributes}; next to it "awaited": it is due when the test awaits it, "mut": {index: new
                           value} of the arguments that the call has changed, and "holds": {number of an object: what
                           it holds of its constructor's parameters}
    examiner -> owner      {"verdicts": [[verdict, detail] for each test]}
    zygote -> owner        {"ended": wait status of the program, "seconds", "cpu", "memory", "overdue": bool,
                           "crowd": ended for its many threads, "struck": one was killed from outside}

An answer that no one asked for, with another id, with bytes after it or with an unknown value ends the program's
chances: the verdict `protocol` stands for all remaining tests.
"""
