# expected: wrong exception load_error exited died protocol timeout
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

# include: answer.py
