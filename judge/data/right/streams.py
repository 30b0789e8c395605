# === reconfigure_line_buffering
import sys
sys.stdout.reconfigure(line_buffering=True)
for word in input().split():
    print(word.title())
# --- stdin
to be
# --- stdout
To
Be
# === reconfigure_encodings
import sys
sys.stdin.reconfigure(encoding="utf-8")
sys.stdout.reconfigure(encoding="utf-8", errors="replace")
print(len(input()), "größer")
# --- stdin
naïve
# --- stdout
5 größer
# === reconfigure_newline
import sys
sys.stdout.reconfigure(newline="\n", write_through=True)
print("a\nb")
# --- stdin

# --- stdout
a
b
# === wrapper_of_stdout
import io, sys
sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8")
sys.stdin = io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8")
print(sys.stdin.readline().strip() + "!")
# --- stdin
hé
# --- stdout
hé!
# === wrapper_never_flushed
import io, sys
out = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8", write_through=False)
out.write("no flush here\n")
# --- stdin

# --- stdout
no flush here
# === codecs_writer
import codecs, sys
sys.stdout = codecs.getwriter("utf-8")(sys.stdout.buffer)
sys.stdout.write("übung\n")
# --- stdin

# --- stdout
übung
# === detached
import io, sys
raw = sys.stdout.detach()
sys.stdout = io.TextIOWrapper(raw, "utf-8")
print("detached")
# --- stdin

# --- stdout
detached
# === bytes_out
import sys
write = sys.stdout.buffer.write
for i in range(3):
    write(b"%d\n" % (i * i))
# --- stdin

# --- stdout
0
1
4
# === mixed_text_and_bytes
import sys
print("text")
sys.stdout.flush()
sys.stdout.buffer.write(b"bytes\n")
sys.stdout.buffer.flush()
print("text again")
# --- stdin

# --- stdout
text
bytes
text again
# === os_write_joined
import os
out = []
for i in range(int(input())):
    out.append(str(i))
os.write(1, "\n".join(out).encode())
# --- stdin
3
# --- stdout
0
1
2
# === buffered_writer_of_descriptor
import io
with io.open(1, "wb", closefd=False) as out:
    out.write(b"from a descriptor\n")
# --- stdin

# --- stdout
from a descriptor
# === redirected_and_back
import contextlib, io
buffer = io.StringIO()
with contextlib.redirect_stdout(buffer):
    print("kept")
print(buffer.getvalue().strip()[::-1])
# --- stdin

# --- stdout
tpek
# === stringio_output_at_once
import io, sys
out = io.StringIO()
for i in range(4):
    print(i, end=" ", file=out)
sys.stdout.write(out.getvalue().rstrip() + "\n")
# --- stdin

# --- stdout
0 1 2 3
# === print_bound_to_write
import sys
print = lambda *a, sep=" ", end="\n": sys.stdout.write(sep.join(map(str, a)) + end)
print(1, 2, sep="-")
# --- stdin

# --- stdout
1-2
# === atexit_flushes_a_list
import atexit
lines = []
atexit.register(lambda: print("\n".join(lines)))
for i in range(3):
    lines.append(f"line {i}")
# --- stdin

# --- stdout
line 0
line 1
line 2
# === writelines_of_a_generator
import sys
sys.stdout.writelines(f"{i},{i * 2}\n" for i in range(3))
# --- stdin

# --- stdout
0,0
1,2
2,4
# === isatty_and_encoding
import sys
assert not sys.stdin.isatty() and not sys.stdout.isatty()
print(sys.stdout.encoding.lower().replace("_", "-"), sys.stdin.name)
# --- stdin

# --- stdout
utf-8 <stdin>
# === logging_to_stdout
import logging, sys
logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(levelname)s %(message)s")
logging.info("ready")
logging.debug("hidden")
# --- stdin

# --- stdout
INFO ready
# === pprint_of_a_dict
from pprint import pprint
pprint({"b": [1, 2], "a": (3,)})
# --- stdin

# --- stdout
{'a': (3,), 'b': [1, 2]}
# === finalizer_prints
class Resource:
    def __del__(self):
        print("released")
resource = Resource()
print("used")
# --- stdin

# --- stdout
used
released
# === exit_code_zero_by_main
import sys
def main(argv):
    print(len(argv))
    return 0
if __name__ == "__main__":
    sys.exit(main(sys.argv))
# --- stdin

# --- stdout
1
# === finally_then_exit
import sys
try:
    print("work")
    sys.exit(0)
finally:
    print("cleanup")
# --- stdin

# --- stdout
work
cleanup
# === stderr_for_debugging
import sys, warnings
print("debug", file=sys.stderr)
warnings.warn("careful")
print("answer")
# --- stdin

# --- stdout
answer
# === own_file_and_name
import os
print(os.path.basename(__file__).endswith(".py"), __name__)
# --- stdin

# --- stdout
True __main__
# === unittest_main_without_exit
import unittest
class T(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(sum([1, 2]), 3)
unittest.main(exit=False)
print("done")
# --- stdin

# --- stdout
done
# === closed_early
import sys
print("last words")
sys.stdout.close()
# --- stdin

# --- stdout
last words
# === log_of_a_million_characters
import sys
sys.stderr.write("." * 10**6)
print(sys.stdin.read(3) * 2)
# --- stdin
abcdef
# --- stdout
abcabc
# === tee_class
import sys
class Tee:
    def __init__(self, *streams):
        self.streams = streams
    def write(self, text):
        for stream in self.streams:
            stream.write(text)
    def flush(self):
        for stream in self.streams:
            stream.flush()
sys.stdout = Tee(sys.stdout, sys.stderr)
print("both")
# --- stdin

# --- stdout
both
