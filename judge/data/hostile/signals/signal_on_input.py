# expected: wrong exception load_error
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

# include: answer.py
