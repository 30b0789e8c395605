# expected: wrong exception load_error exited died protocol timeout
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

# include: answer.py
