# expected: wrong exception load_error exited died protocol timeout opaque memory output_limit
# settings: {"stdio": (("1 2\n", "3"),)}
# === writes_its_input
import os
os.write(0, b'9')
os.lseek(0, 0, 0)
print(open(0).read()[:1] == '9' and 3)
# === maps_its_input
import mmap
m = mmap.mmap(0, 0)
m[:1] = b'9'
print(3 if m[:1] == b'9' else 0)
# === truncates_its_input
import os
os.ftruncate(0, 0)
print(3 if not os.read(0, 9) else 0)
# === grows_its_input
import os
os.posix_fallocate(0, 0, 1 << 30)
print(3)
# === unseals_its_input
import fcntl
fcntl.fcntl(0, 1033, 0)
print(3)
# === opens_its_input_anew
import os
fd = os.open('/proc/self/fd/0', os.O_RDWR)
os.write(fd, b'9')
print(3)
# === executes_its_input
import os
os.execve(0, ['x'], {})
print(3)
# === closes_and_exits
import os, sys
sys.stdout.close()
os._exit(0)
# === exit_hook_that_ends
import atexit, os
atexit.register(os._exit, 0)
print(4)
# === exit_hook_without_end
import atexit
def again():
    while True: pass
atexit.register(again)
print(3)
# === flush_without_end
import sys
class O:
    def write(self, t): pass
    def flush(self):
        while True: pass
sys.stdout = O()
print(3)
# === finalizer_without_end
class A:
    def __del__(self):
        while True: pass
a = A()
print(3)
# === thread_without_end
import threading, time
threading.Thread(target=time.sleep, args=(99,)).start()
print(3)
# === namespace_that_can_not_end
import sys
sys.modules['__main__'] = None
print(4)
# === patches_the_end
import os, threading
os._exit = lambda code: None
threading._shutdown = None
print(4)
# === status_that_wraps
import sys
print(3)
sys.exit(2**64 + 1)
# === status_of_a_text
import sys
print(3)
sys.exit('0')
# === pair_on_another_descriptor
import socket
E = type(socket.socketpair()[0])
for fd in range(3, 40):
    try: E(fd).send(b'3')
    except OSError: pass
# === reads_the_answer_elsewhere
import os
for fd in range(3, 40):
    try: print(os.read(fd, 99))
    except OSError: pass
# === seeks_behind_its_input
import os
os.lseek(0, 1 << 40, 0)
print(os.read(0, 9) or 4)
