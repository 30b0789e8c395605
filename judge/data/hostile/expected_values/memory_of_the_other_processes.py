# expected: wrong exception load_error
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

# include: answer.py
