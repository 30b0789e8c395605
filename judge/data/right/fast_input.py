# === readline_bound
import sys
input = sys.stdin.readline
n = int(input())
print(sum(map(int, input().split())) * n)
# --- stdin
3
1 2 3
# --- stdout
18
# === read_split_iterator
import sys
def main():
    data = iter(sys.stdin.read().split())
    n = int(next(data))
    print(max(int(next(data)) for _ in range(n)))
main()
# --- stdin
4
7 -1 9 3
# --- stdout
9
# === buffer_read_split
import sys
data = sys.stdin.buffer.read().split()
n, k = int(data[0]), int(data[1])
values = sorted(map(int, data[2:2 + n]))
print(values[k - 1])
# --- stdin
5 2
9 4 7 1 3
# --- stdout
3
# === fstat_bytesio
import os, io
input = io.BytesIO(os.read(0, os.fstat(0).st_size)).readline
t = int(input())
for _ in range(t):
    a, b = map(int, input().split())
    print(a ^ b)
# --- stdin
2
5 3
8 1
# --- stdout
6
9
# === pyrival_region
import os, sys
from io import BytesIO, IOBase
BUFSIZE = 8192
class FastIO(IOBase):
    newlines = 0
    def __init__(self, file):
        self._fd = file.fileno()
        self.buffer = BytesIO()
        self.writable = "x" in file.mode or "r" not in file.mode
        self.write = self.buffer.write if self.writable else None
    def read(self):
        while True:
            b = os.read(self._fd, max(os.fstat(self._fd).st_size, BUFSIZE))
            if not b:
                break
            ptr = self.buffer.tell()
            self.buffer.seek(0, 2), self.buffer.write(b), self.buffer.seek(ptr)
        self.newlines = 0
        return self.buffer.read()
    def readline(self):
        while self.newlines == 0:
            b = os.read(self._fd, max(os.fstat(self._fd).st_size, BUFSIZE))
            self.newlines = b.count(b"\n") + (not b)
            ptr = self.buffer.tell()
            self.buffer.seek(0, 2), self.buffer.write(b), self.buffer.seek(ptr)
        self.newlines -= 1
        return self.buffer.readline()
    def flush(self):
        if self.writable:
            os.write(self._fd, self.buffer.getvalue())
            self.buffer.truncate(0), self.buffer.seek(0)
class IOWrapper(IOBase):
    def __init__(self, file):
        self.buffer = FastIO(file)
        self.flush = self.buffer.flush
        self.writable = self.buffer.writable
        self.write = lambda s: self.buffer.write(s.encode("ascii"))
        self.read = lambda: self.buffer.read().decode("ascii")
        self.readline = lambda: self.buffer.readline().decode("ascii")
sys.stdin, sys.stdout = IOWrapper(sys.stdin), IOWrapper(sys.stdout)
input = lambda: sys.stdin.readline().rstrip("\r\n")
for _ in range(int(input())):
    n = int(input())
    a = list(map(int, input().split()))
    print(*sorted(a)[:n], sep=" ")
# --- stdin
2
3
3 1 2
2
9 8
# --- stdout
1 2 3
8 9
# === open_zero
lines = open(0).read().splitlines()
print(sum(len(line) for line in lines[1:]))
# --- stdin
2
ab
cde
# --- stdout
5
# === open_zero_binary
n, *values = map(int, open(0, "rb").read().split())
print(n * sum(values))
# --- stdin
2 3 4
# --- stdout
14
# === unpack_open_zero
_, *rows = open(0)
print("\n".join(row.strip()[::-1] for row in rows))
# --- stdin
2
abc
xy
# --- stdout
cba
yx
# === dev_stdin
with open("/dev/stdin") as file:
    numbers = [int(line) for line in file if line.strip()]
print(sum(numbers), len(numbers))
# --- stdin
4
5

6
# --- stdout
15 3
# === os_read_loop
import os
chunks = []
while True:
    chunk = os.read(0, 4)
    if not chunk:
        break
    chunks.append(chunk)
print(len(b"".join(chunks).split()))
# --- stdin
a bb ccc dddd
eeeee
# --- stdout
5
# === mmap_input
import mmap
with mmap.mmap(0, 0, access=mmap.ACCESS_READ) as data:
    total = 0
    line = data.readline()
    while line:
        total += int(line)
        line = data.readline()
print(total)
# --- stdin
10
20
12
# --- stdout
42
# === readlines_slices
import sys
lines = [line.rstrip() for line in sys.stdin.readlines()]
h, w = map(int, lines[0].split())
grid = lines[1:1 + h]
print(sum(row.count("#") for row in grid), [*map("".join, zip(*grid))][0])
# --- stdin
2 3
#.#
##.
# --- stdout
4 ##
# === eof_by_exception
total = 0
while True:
    try:
        total += int(input())
    except EOFError:
        break
print(total)
# --- stdin
1
2
3
# --- stdout
6
# === sentinel_iter
lines = list(iter(input, "END"))
print(len(lines), lines[-1].upper())
# --- stdin
first
second
END
ignored
# --- stdout
2 SECOND
# === fileinput_module
import fileinput
words = {}
for line in fileinput.input():
    for word in line.split():
        words[word] = words.get(word, 0) + 1
print(sorted(words.items()))
# --- stdin
a b a
b a
# --- stdout
[('a', 3), ('b', 2)]
# === recursion_in_a_thread
import sys, threading
sys.setrecursionlimit(10**6)
threading.stack_size(2**27)
def main():
    n = int(input())
    graph = [[] for _ in range(n)]
    for i in range(1, n):
        graph[i - 1].append(i)
    def depth(v):
        deepest = 0  # by a loop: a generator within max() recurses through C, of which 3.12 allows few levels
        for u in graph[v]:
            deepest = max(deepest, depth(u))
        return 1 + deepest
    print(depth(0))
thread = threading.Thread(target=main)
thread.start()
thread.join()
# --- stdin
3000
# --- stdout
3000
# === recursion_in_a_thread_of_512_mb
import sys, threading
sys.setrecursionlimit(300000)
threading.stack_size(0x20000000)
def solve():
    n = int(sys.stdin.readline())
    def f(k):
        return 0 if k == 0 else f(k - 1) + k
    print(f(n))
t = threading.Thread(target=solve)
t.start()
t.join()
# --- stdin
20000
# --- stdout
200010000
# === bootstrap_generators
from types import GeneratorType
def bootstrap(f, stack=[]):
    def wrapped(*args):
        if stack:
            return f(*args)
        to = f(*args)
        while True:
            if type(to) is GeneratorType:
                stack.append(to)
                to = next(to)
            else:
                stack.pop()
                if not stack:
                    break
                to = stack[-1].send(to)
        return to
    return wrapped
@bootstrap
def size(n):
    if n == 0:
        yield 0
    below = yield size(n - 1)
    yield below + 1
print(size(int(input())))
# --- stdin
20000
# --- stdout
20000
# === stdin_iterated
import sys
best = max(sys.stdin, key=len)
print(best.strip())
# --- stdin
one
three
to
# --- stdout
three
# === input_with_prompt
name = input("")
ages = [int(x) for x in input().split(",")]
print(f"{name}: {sum(ages) / len(ages):.2f}")
# --- stdin
Ada
3,4
# --- stdout
Ada: 3.50
# === json_from_stdin
import json, sys
rows = json.load(sys.stdin)
print(json.dumps({row["k"]: row["v"] * 2 for row in rows}, sort_keys=True))
# --- stdin
[{"k": "b", "v": 2}, {"k": "a", "v": 1}]
# --- stdout
{"a": 2, "b": 4}
# === csv_from_stdin
import csv, sys
reader = csv.DictReader(sys.stdin)
print(sum(float(row["price"]) * int(row["n"]) for row in reader))
# --- stdin
n,price
2,1.5
1,0.25
# --- stdout
3.25
# === struct_of_bytes
import sys, struct
raw = sys.stdin.buffer.readline().strip()
print(struct.unpack(">H", raw[:2])[0])
# --- stdin
AB
# --- stdout
16706
# === array_of_ints
import sys
from array import array
values = array("q", map(int, sys.stdin.read().split()))
for i in range(1, len(values)):
    values[i] += values[i - 1]
print(*values)
# --- stdin
1 2 3 4
# --- stdout
1 3 6 10
# === numbers_by_numpy
import sys
import numpy as np
data = np.array(sys.stdin.buffer.read().split(), dtype=np.int64)
print(int(data[1:].cumsum().max()), data.dtype)
# --- stdin
3 5 -2 4
# --- stdout
7 int64
# === loadtxt_of_stdin
import sys
import numpy as np
matrix = np.loadtxt(sys.stdin, dtype=int)
print(matrix.T.tolist(), int(np.trace(matrix)))
# --- stdin
1 2
3 4
# --- stdout
[[1, 3], [2, 4]] 5
# === seek_and_read_again
import sys
n = sum(1 for _ in sys.stdin)
sys.stdin.seek(0)
print(n, sys.stdin.readline().strip())
# --- stdin
alpha
beta
# --- stdout
2 alpha
# === select_before_reading
import select, sys
ready, _, _ = select.select([sys.stdin], [], [], 1)
print(bool(ready), sys.stdin.readline().strip())
# --- stdin
go
# --- stdout
True go
# === lambda_readers
I = lambda: int(input())
MI = lambda: map(int, input().split())
LI = lambda: list(MI())
n = I(); a, b = MI(); l = LI()
print(n, a * b, l[::-1])
# --- stdin
1
2 3
4 5 6
# --- stdout
1 6 [6, 5, 4]
