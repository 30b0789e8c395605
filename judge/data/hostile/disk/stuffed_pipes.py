# expected: wrong exception load_error exited died
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

# include: answer.py
