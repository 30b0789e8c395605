# expected: wrong exception load_error
# the control socket of the worker, if it was left open
import os, socket, stat
broke = False
for fd in range(256):
    try:
        if stat.S_ISSOCK(os.fstat(fd).st_mode):
            broke = True
            os.write(fd, b"{}")
    except OSError:
        pass

# include: answer.py
